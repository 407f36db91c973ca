#include "sim/virtual_trainers.h"

#include <filesystem>
#include <utility>

#include "learn/data/files/own_data.h"

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

}  // namespace

Result<std::unique_ptr<VirtualTrainers>> VirtualTrainers::start(const client::TrainerOptions& options,
                                                                std::size_t workers, const learn::Task& task,
                                                                const run::RunConfig& config) {
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
        .count = learn::trained_samples(SampleCount(task.samples_of(client).size()), share),
        .numbers = {},
        .path = {}};
    if (paths.empty())
      samples.numbers = task.trained_on(client, share);
    else
      samples.path = std::filesystem::absolute(paths.at(client.value())).string();
    return samples;
  };
  FEDGE_TRY(info, learn::describe(data));
  auto trainers = std::make_unique<VirtualTrainers>();
  for (std::size_t i = 0; i < workers; ++i) {
    trainers->trainers_.push_back(std::make_unique<ExternalTrainer>(options));
    FEDGE_TRY(ready, trainers->trainers_.back()->begin({.client = ClientId(0),
                                                        .name = config.name,
                                                        .seed = config.seed,
                                                        .task = task.spec(),
                                                        .data = info,
                                                        .layout = task.model().layout(),
                                                        .clients = static_cast<std::uint32_t>(task.clients()),
                                                        .samples_of = samples_of}));
    static_cast<void>(ready);  // how many samples a client has, the simulation knows
  }
  return trainers;
}

std::vector<client::TrainElsewhere> VirtualTrainers::each() const {
  std::vector<client::TrainElsewhere> all;
  for (const auto& trainer : trainers_)
    all.emplace_back(
        [&trainer = *trainer](const client::WorkOrder& order, std::span<const float> model,
                              std::span<float> update) { return trainer.train(order, model, update); });
  return all;
}

}  // namespace fedge::sim
