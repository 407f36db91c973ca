#include "sim/training/virtual_trainers.h"

#include <filesystem>
#include <numeric>
#include <string>
#include <utility>

#include "learn/data/files/own_data.h"
#include "learn/data/validation.h"
#include "learn/models/external.h"

namespace fedge::sim {
namespace {

using client::ExternalTrainer;

// Which samples a client has is told by their numbers in the data set's training samples, so these must be
// numbered by the data set alone.
Result<void> check_numbers(const learn::DataSpec& data) {
  const auto refuse = [](const std::string& what) {
    return Error{ErrorCode::kUnsupported,
                 "--trainer: a trainer program is told the numbers of a client's samples, but " + what};
  };
  if (learn::is_text(data)) return refuse("the samples of a text have none");
  if (learn::in_own_files(data) && data.split.kind != learn::SplitKind::kFile)
    return refuse(
        "data.split draws the training samples; set its kind to \"file\", or partition.kind to \"own\", with "
        "which the program is told the path of each client's data");
  return {};
}

// The numbers of the samples on which a coordinator evaluates models.
Result<ExternalTrainer::VirtualSamples> test_samples(const learn::Dataset& test, const learn::Task& task,
                                                     const run::RunConfig& config) {
  ExternalTrainer::VirtualSamples samples{
      .count = SampleCount(test.size()), .numbers = {}, .path = {}, .of = "test"};
  if (config.task.data.validation > 0) {
    samples.of = "training";
    FEDGE_TRY(drawn, learn::validation_samples(config.task.data, task.data().labels, task.data().classes,
                                               Rng(config.seed)));
    samples.numbers = std::move(drawn);
  } else {
    samples.numbers.resize(test.size());
    std::iota(samples.numbers.begin(), samples.numbers.end(), 0U);
  }
  return samples;
}

}  // namespace

Result<std::unique_ptr<VirtualTrainers>> VirtualTrainers::start(const client::TrainerOptions& options,
                                                                std::size_t workers, const learn::Task& task,
                                                                const run::RunConfig& config,
                                                                const learn::Dataset* test) {
  const learn::DataSpec& data = task.spec().data;
  std::vector<std::filesystem::path> paths;
  if (is_own(data)) {
    FEDGE_TRY(found, learn::client_paths(data));
    paths = std::move(found);
  } else {
    FEDGE_TRY_VOID(check_numbers(data));
  }
  const auto samples_of = [&task, paths](ClientId client, double share) {
    ExternalTrainer::VirtualSamples samples{
        .count = learn::trained_samples(task.sample_count(client), share), .numbers = {}, .path = {}};
    if (paths.empty())
      samples.numbers = task.trained_on(client, share);
    else
      samples.path = std::filesystem::absolute(paths.at(client.value())).string();
    return samples;
  };
  const auto evaluated_by = [&task, paths](ClientId client) {
    return ExternalTrainer::VirtualSamples{
        .count = task.evaluation_samples(client),
        .numbers = {},
        .path = std::filesystem::absolute(paths.at(client.value())).string()};
  };
  FEDGE_TRY(info, learn::describe(data));
  auto trainers = std::make_unique<VirtualTrainers>();
  if (test != nullptr) {
    FEDGE_TRY(samples, test_samples(*test, task, config));
    trainers->test_ = std::move(samples);
    const auto scale = target_scale(*test);
    trainers->scale_.assign(scale.begin(), scale.end());
  }
  for (std::size_t i = 0; i < workers; ++i) {
    trainers->trainers_.push_back(std::make_unique<ExternalTrainer>(options));
    FEDGE_TRY(ready, trainers->trainers_.back()->begin({.client = ClientId(0),
                                                        .name = config.name,
                                                        .seed = config.seed,
                                                        .task = task.spec(),
                                                        .data = info,
                                                        .layout = task.model().layout(),
                                                        .sums = learn::sums_shape(task.model()),
                                                        .clients = static_cast<std::uint32_t>(task.clients()),
                                                        .samples_of = samples_of,
                                                        .evaluated_by = evaluated_by}));
    static_cast<void>(ready);  // how many samples a client has, the simulation knows
  }
  trainers->evaluates_ = learn::is_external(task.spec().model);
  return trainers;
}

std::vector<client::Elsewhere> VirtualTrainers::each() const {
  using Evaluate = decltype(client::Elsewhere::evaluate);
  std::vector<client::Elsewhere> all;
  for (const auto& trainer : trainers_)
    all.push_back({.train = [&trainer = *trainer](
                                const client::WorkOrder& order, std::span<const float> model,
                                std::span<float> update) { return trainer.train(order, model, update); },
                   .evaluate = evaluates_ ? Evaluate([&trainer = *trainer](const client::WorkOrder& order,
                                                                           std::span<const float> model) {
                     return trainer.evaluate(order, model);
                   })
                                          : Evaluate()});
  return all;
}

Result<learn::Evaluation> VirtualTrainers::evaluate(std::span<const float> model, RoundNumber round) const {
  auto sums = trainers_.front()->evaluate_on(test_, round, model);
  if (!sums) sums = trainers_.front()->evaluate_on(test_, round, model);
  if (!sums)
    return sums.error().with_prefix("round " + std::to_string(round.value()) + " cannot be evaluated: ");
  return learn::evaluation_of(std::move(*sums), scale_);
}

}  // namespace fedge::sim
