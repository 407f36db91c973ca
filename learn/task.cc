#include "learn/task.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <string>

#include "core/check.h"
#include "core/config/own_part.h"
#include "learn/data/files/own_data.h"
#include "learn/data/validation.h"
#include "learn/evaluation/evaluate.h"
#include "learn/models/adapters.h"
#include "learn/models/kinds.h"
#include "learn/objectives/kinds.h"
#include "learn/statistics/federated_statistics.h"
#include "learn/statistics/shares.h"
#include "learn/submodel.h"

namespace fedge::learn {
namespace {

// Limited so that the trainer's sub-models also have room for the slice itself.
constexpr std::size_t kMaxShares = Submodels::kMost / 2;

// The networks that nested training draws from: the slice itself, and those of `shares` that fit into it.
std::vector<Widths> nested_widths(const Model& whole, std::span<const double> shares, const Widths& slice) {
  std::vector<Widths> nested{slice};
  for (const double share : shares) {
    Widths widths = share_widths(whole, share);
    if (std::equal(widths.begin(), widths.end(), slice.begin(), std::less_equal<>()))
      nested.push_back(std::move(widths));
  }
  std::sort(nested.begin(), nested.end());
  nested.erase(std::unique(nested.begin(), nested.end()), nested.end());
  return nested;
}

// Refuses combinations that a run file cannot contain, but a message of a coordinator can.
Result<void> check_training(const TrainingSpec& training, const Model& model) {
  // 16 GiB of float32: neither a mistake in a run file nor a coordinator may exhaust the machine's memory.
  constexpr std::size_t kMostActivations = std::size_t{1} << 32;
  if (training.batch_size > kMostActivations / (model.activations_per_sample() + 1))
    return invalid("training.batch_size: the activations of " + std::to_string(training.batch_size) +
                   " samples have more than 2^32 numbers; use smaller batches or a smaller model");
  FEDGE_TRY_VOID(check_loss(training.loss, model));
  if (training.start_loss &&
      (!training.loss.usual() || model.adapters() != nullptr || training.local_model != LocalModel::kWhole))
    return invalid(
        "training.start_loss: the loss before training can be measured only of a whole model without "
        "adapters, "
        "with the usual loss");
  if (training.personal.on() && training.local_model != LocalModel::kWhole)
    return invalid(
        "training.personal: clients that keep parameters for themselves train the whole model; use "
        "training.local_model = \"whole\"");
  const bool adapters = model.adapters() != nullptr;
  const bool slices =
      training.local_model == LocalModel::kSlice || training.local_model == LocalModel::kNested;
  if (slices && (adapters || !has_submodels(model.spec()))) {
    const ModelKind* kind = find_model_kind(model.spec().kind);
    FEDGE_CHECK(kind != nullptr, "the kind of a model that was made");
    return invalid("training.local_model: " + (adapters ? "a model with adapters" : with_article(*kind)) +
                   " cannot be sliced; use \"whole\"");
  }
  if (training.local_model == LocalModel::kPrefix && !adapters)
    return invalid("training.local_model: \"prefix\" requires a model with adapters; set model.adapter.rank");
  if (training.local_model == LocalModel::kNested && training.optimizer == OptimizerKind::kAdamW)
    return invalid(
        "training.optimizer: adamw does not work with local_model = \"nested\", because adamw also counts "
        "the steps in which a parameter is not trained");
  if (training.objective.kind == "contrastive" && model.representation() == 0)
    return invalid(
        "training.objective: contrastive needs a model of layers with one prediction for a sample and at "
        "least one trained layer before the last");
  if (training.local_model == LocalModel::kSplit) {
    if (model.split() == nullptr)
      return invalid(
          "training.local_model: \"split\" requires a transformer or llama with adapters; set "
          "model.adapter.rank");
    if (training.objective.kind != "plain")
      return invalid("training.objective: split training has no objective besides the loss; use \"plain\"");
  }
  if (training.objective.remembers() && training.local_model != LocalModel::kWhole)
    return invalid("training.objective: " + training.objective.kind + " requires local_model = \"whole\"");
  if (training.objective.kind == "rank_pruning" && training.local_model != LocalModel::kPrefix)
    return invalid("training.objective: rank_pruning requires local_model = \"prefix\"");
  return {};
}

struct Parts {
  std::shared_ptr<const Dataset> data;
  Partition partition;
};

// The training samples of all clients.
Result<Parts> load_parts(const DataSpec& spec, const Rng& rng) {
  if (is_own(spec)) {
    FEDGE_TRY(own, load_all_own(spec, Purpose::kTraining, rng));
    return Parts{std::make_shared<const Dataset>(std::move(own.data)), std::move(own.partition)};
  }
  FEDGE_TRY(data, load_train(spec, rng));
  FEDGE_TRY(partition, partition_for_clients(spec, data->labels, data->classes, rng));
  return Parts{std::move(data), std::move(partition)};
}

}  // namespace

SampleCount trained_samples(SampleCount count, double share) {
  FEDGE_CHECK(share > 0 && share <= 1, "a share of the samples");
  if (share == 1) return count;
  return SampleCount(static_cast<std::uint64_t>(std::ceil(share * static_cast<double>(count.value()))));
}

Result<std::shared_ptr<const Task>> Task::build(const TaskSpec& spec, std::uint64_t seed, bool evaluates) {
  FEDGE_TRY(parts, load_parts(spec.data, Rng(seed)));
  FEDGE_TRY(model, make_model(spec.model, parts.data->shape, parts.data->target()));
  FEDGE_TRY_VOID(check_training(spec.training, *model));
  std::shared_ptr<Task> task(
      new Task(spec, seed, std::move(parts.data), std::move(parts.partition), std::move(model)));
  FEDGE_TRY_VOID(task->find_cuts());
  if (evaluates && is_own(spec.data)) {
    FEDGE_TRY(evaluation, load_all_own(spec.data, Purpose::kEvaluation, Rng(seed)));
    task->evaluation_.emplace(std::move(evaluation));
  }
  return std::shared_ptr<const Task>(std::move(task));
}

Result<std::shared_ptr<const Task>> Task::build_for(const TaskSpec& spec, std::uint64_t seed, ClientId client,
                                                    bool evaluates) {
  if (client.value() >= spec.data.partition.clients && !is_own(spec.data))
    return invalid(
        "client " + std::to_string(client.value()) +
        " has no part of the data, because client numbers must be below data.partition.clients, which is " +
        std::to_string(spec.data.partition.clients));
  FEDGE_TRY(data, load_part(spec.data, client.value(), Rng(seed)));
  FEDGE_TRY(model, make_model(spec.model, data->shape, data->target()));
  FEDGE_TRY_VOID(check_training(spec.training, *model));
  std::vector<std::uint32_t> everything(data->size());
  std::iota(everything.begin(), everything.end(), 0U);
  Partition part(std::move(everything), {0, data->size()});
  std::shared_ptr<Task> task(new Task(spec, seed, std::move(data), std::move(part), std::move(model)));
  task->only_ = client;
  FEDGE_TRY_VOID(task->find_cuts());
  if (evaluates && is_own(spec.data)) {
    FEDGE_TRY(evaluation, load_own(spec.data, Purpose::kEvaluation, client.value(), Rng(seed)));
    std::vector<std::uint32_t> all(evaluation.size());
    std::iota(all.begin(), all.end(), 0U);
    Partition whole(std::move(all), {0, evaluation.size()});
    task->evaluation_.emplace(OwnedSamples{std::move(evaluation), std::move(whole)});
  }
  return std::shared_ptr<const Task>(std::move(task));
}

Result<std::shared_ptr<const Task>> Task::build_without_data(const TaskSpec& spec, std::uint64_t seed,
                                                             ClientId client) {
  FEDGE_TRY(info, describe(spec.data));
  FEDGE_TRY(model, make_model(spec.model, info.shape, info.target()));
  FEDGE_TRY_VOID(check_training(spec.training, *model));
  auto data = std::make_shared<const Dataset>(Dataset{info.shape, info.classes, {}, {}, {}, {}, {}});
  std::shared_ptr<Task> task(new Task(spec, seed, std::move(data), Partition({}, {0, 0}), std::move(model)));
  task->only_ = client;
  FEDGE_TRY_VOID(task->find_cuts());
  return std::shared_ptr<const Task>(std::move(task));
}

Coverage Task::needed(const Coverage& trained) const {
  if (split_)
    if (const std::size_t cut = split_->cut_of(trained); cut > 0)
      return split_->read_below(cut, spec_.training.split.keeps_targets);
  const Adapters* adapters = model_->adapters();
  if (adapters == nullptr || spec_.training.local_model != LocalModel::kPrefix || trained.empty())
    return Coverage::all(model_->layout()->size());
  const AdapterLayout& shape = adapters->shape();
  return Coverage::all(shape.prefix(std::min(shape.ranks_of(trained), shape.rank)).end);
}

Coverage Task::personal() const {
  const ParameterLayout& layout = *model_->layout();
  if (model_->spec().personal.empty()) return {};
  return Coverage::all(layout.size()).subtract(layout.trainable());
}

SampleCount Task::sample_count(ClientId client) const {
  FEDGE_CHECK(only_ ? client == *only_ : client.value() < clients(), "a client this task was not built for");
  return SampleCount(partition_.size_of(only_ ? 0 : client.value()));
}

ClientSamples Task::samples_of(ClientId client) const {
  FEDGE_CHECK(only_ ? client == *only_ : client.value() < clients(), "a client this task was not built for");
  return partition_.of(only_ ? 0 : client.value());
}

SampleCount Task::evaluation_samples(ClientId client) const {
  if (!evaluation_) return {};
  FEDGE_CHECK(only_ ? client == *only_ : client.value() < clients(), "a client this task was not built for");
  return SampleCount(evaluation_->partition.size_of(only_ ? 0 : client.value()));
}

// Refuses a task without the statistics by which the run normalises, or with others.
Result<void> Task::check_normalisation(const FeatureColumns& columns, const Normalisation* by) const {
  const std::size_t given = by != nullptr ? by->mean.size() : 0;
  const std::size_t expected = spec_.data.federated_normalisation ? columns.size() + columns.all_slots() : 0;
  if (given == expected) return {};
  return invalid("the task has the mean of " + std::to_string(given) + " columns, but the run normalises " +
                 std::to_string(expected));
}

Result<EvaluationSums> Task::evaluate(ClientId client, std::span<const float> model,
                                      const SampleEvaluation& how) const {
  FEDGE_CHECK(evaluation_.has_value(), "a task with samples for evaluation");
  FEDGE_TRY_VOID(check_normalisation(evaluation_->data.columns, how.normalisation));
  return evaluate_samples(*model_, model, evaluation_->data,
                          evaluation_->partition.of(only_ ? 0 : client.value()), how);
}

Result<std::vector<std::int64_t>> Task::count_values(ClientId client, std::span<const float> edges,
                                                     std::int64_t whole) const {
  if (!spec_.data.federated_normalisation)
    return Error{ErrorCode::kRefused, "the run does not normalise its data by the clients' statistics"};
  if (sample_count(client).value() == 0)
    return Error{ErrorCode::kRefused, "this client has no training samples to count"};
  FEDGE_TRY(info, describe(spec_.data));
  const StatisticsShape shape = StatisticsShape::of(info, whole);
  FEDGE_TRY(counts, learn::count_values(shape, *data_, samples_of(client), edges));
  return whole > 0 ? shares_of(shape, counts) : std::move(counts);
}

std::vector<std::uint32_t> Task::trained_on(ClientId client, double data_share) const {
  const ClientSamples all = samples_of(client);
  std::vector<std::uint32_t> samples(all.begin(), all.end());
  if (data_share >= 1) return samples;
  rng_.fork("withheld", client.value()).shuffle(std::span(samples));
  samples.resize(trained_samples(SampleCount(samples.size()), data_share).value());
  return samples;
}

std::vector<std::uint64_t> Task::label_counts(ClientId client, double data_share) const {
  std::vector<std::uint64_t> counts(data_->classes, 0);
  for (const std::uint32_t sample : trained_on(client, data_share)) ++counts[data_->labels[sample]];
  return counts;
}

bool Task::has_own_parts() const {
  const ModelKind* model = find_model_kind(spec_.model.kind);
  const ObjectiveKind* objective = find_objective_kind(spec_.training.objective.kind);
  return (model != nullptr && model->own) || (objective != nullptr && objective->own);
}

Result<TrainingResult> Task::train(const Assignment& assignment, std::span<const float> global,
                                   std::span<float> update, Trainer& trainer) const {
  return config::failure_as_error([&]() -> Result<TrainingResult> {
    FEDGE_TRY(result, train_assigned(assignment, global, update, trainer));
    if (!spec_.training.start_loss || assignment.personal || result.steps == 0) return result;
    FEDGE_TRY(
        sums,
        evaluate_samples(
            *model_, global, *data_, trained_on(assignment.client, assignment.data_share),
            {.stop = assignment.stop, .normalisation = assignment.normalisation, .base = assignment.base}));
    result.mean_loss = sums.metrics().loss;
    return result;
  });
}

Result<TrainingResult> Task::train_assigned(const Assignment& assignment, std::span<const float> global,
                                            std::span<float> update, Trainer& trainer) const {
  FEDGE_CHECK(global.size() == model_->layout()->size(), "model size");
  FEDGE_TRY_VOID(check(assignment));
  const Coverage* coverage = assignment.coverage;
  FEDGE_CHECK(update.size() == (coverage != nullptr ? coverage->count() : global.size()), "update size");
  if (assignment.local == LocalModel::kNested ||
      (assignment.local == LocalModel::kSlice && update.size() != global.size()))
    return train_slice(assignment, global, update, trainer);
  if (assignment.local == LocalModel::kPrefix) return train_prefix(assignment, global, update, trainer);
  if (assignment.local == LocalModel::kSplit) return train_split(assignment, global, update, trainer);
  if (update.size() != global.size()) return train_part(assignment, global, update, {}, trainer);
  std::copy(global.begin(), global.end(), update.begin());
  const TrainingResult result = run(assignment, update, {.correction = assignment.correction}, trainer);
  for (std::size_t i = 0; i < update.size(); ++i) update[i] -= global[i];
  return result;
}

// The parameters of a working copy: of a model that reads_apart() only those that can be trained.
void Task::copy_trainable(std::span<const float> global, std::span<float> copy) const {
  const std::size_t size = global.size();
  const Coverage copied = model_->reads_apart() ? model_->layout()->trainable() : Coverage::all(size);
  for (const Range& range : copied.ranges())
    std::copy_n(global.data() + range.begin, range.size(), copy.data() + range.begin);
}

TrainingResult Task::train_part(const Assignment& assignment, std::span<const float> global,
                                std::span<float> update, TrainingOptions options, Trainer& trainer) const {
  const std::span<float> trained = trainer.scratch();
  copy_trainable(global, trained);
  if (model_->reads_apart()) options.frozen = global.data();
  options.coverage = assignment.coverage;
  options.correction = assignment.correction;
  const TrainingResult result = run(assignment, trained, options, trainer);
  float* difference = update.data();
  for (const Range& range : assignment.coverage->ranges())
    for (std::size_t i = range.begin; i < range.end; ++i) *difference++ = trained[i] - global[i];
  return result;
}

Result<TrainingResult> Task::train_prefix(const Assignment& assignment, std::span<const float> global,
                                          std::span<float> update, Trainer& trainer) const {
  const Adapters* adapters = model_->adapters();
  if (adapters == nullptr)
    return invalid("the task assigns ranks of adapters, but the model has no adapters");
  const AdapterLayout& shape = adapters->shape();
  const Coverage all = Coverage::of({shape.prefix(shape.rank)});
  Assignment part = assignment;
  if (part.coverage == nullptr) part.coverage = &all;
  if (part.coverage->empty() || part.coverage->ranges().front().begin < shape.offset)
    return invalid("the coverage of the task must consist of the first ranks of the adapters");
  const std::size_t ranks = shape.ranks_of(*part.coverage);
  std::vector<std::size_t> truncations = spec_.training.ranks;
  std::erase_if(truncations, [&](std::size_t rank) { return rank >= ranks; });
  TrainingResult result =
      train_part(part, global, update, {.ranks = ranks, .truncations = truncations}, trainer);
  const ObjectiveSpec& objective = spec_.training.objective;
  if (objective.kind != "rank_pruning") return result;
  const std::size_t kept = kept_ranks(ranks, objective.gamma);
  const auto tail = [&](std::span<const float> values) {
    double sum = 0;
    for (const TailNorms& norms : tail_norms(shape, values, {kept, ranks})) sum += norms.a * norms.b;
    return sum;
  };
  if (tail(trainer.scratch()) < tail(global))
    result.wanted_share = static_cast<double>(kept) / static_cast<double>(shape.rank);
  return result;
}

Result<TrainingResult> Task::train_slice(const Assignment& assignment, std::span<const float> global,
                                         std::span<float> update, Trainer& trainer) const {
  const Coverage all = Coverage::all(global.size());
  const Coverage& slice = assignment.coverage != nullptr ? *assignment.coverage : all;
  FEDGE_TRY(widths, slice_widths(*model_, slice));
  std::vector<Widths> nested;
  if (assignment.local == LocalModel::kNested) nested = nested_widths(*model_, assignment.shares, widths);
  std::vector<float> correction(assignment.correction.empty() ? 0 : update.size());
  if (!correction.empty()) gather(assignment.correction, slice, correction);
  gather(global, slice, update);
  const TrainingResult result =
      run(assignment, update, {.slice = &widths, .nested = nested, .correction = correction}, trainer);
  float* value = update.data();
  for (const Range& range : slice.ranges())
    for (std::size_t i = range.begin; i < range.end; ++i) *value++ -= global[i];
  return result;
}

Result<void> Task::check(const Assignment& assignment) const {
  const std::size_t size = model_->layout()->size();
  if (assignment.coverage != nullptr && assignment.coverage->end() > size)
    return invalid("the coverage ends at parameter " + std::to_string(assignment.coverage->end() - 1) +
                   ", but the model has only " + std::to_string(size) + " parameters");
  if (assignment.local == LocalModel::kNested && assignment.shares.size() > kMaxShares)
    return invalid("the task has " + std::to_string(assignment.shares.size()) + " width fractions; at most " +
                   std::to_string(kMaxShares) + " are allowed");
  for (const double share : assignment.shares)
    if (!(share > 0 && share <= 1))
      return invalid("a width fraction of the task must be above 0 and at most 1, not " +
                     std::to_string(share));
  FEDGE_TRY_VOID(check_normalisation(data_->columns, assignment.normalisation));
  FEDGE_CHECK(assignment.anchor.empty() || assignment.anchor.size() == size, "an anchor for each parameter");
  if (!(assignment.data_share > 0 && assignment.data_share <= 1))
    return invalid("the fraction of samples to train on must be above 0 and at most 1, not " +
                   std::to_string(assignment.data_share));
  if (assignment.correction.empty()) return {};
  const std::string& objective = spec_.training.objective.kind;
  if (objective != "scaffold" && objective != "dynamic")
    return invalid("the task has a correction, which only the objectives scaffold and dynamic use");
  if (assignment.correction.size() != size)
    return invalid("the correction has " + std::to_string(assignment.correction.size()) +
                   " values, but the model has " + std::to_string(size));
  return {};
}

TrainingResult Task::run(const Assignment& assignment, std::span<float> parameters, TrainingOptions options,
                         Trainer& trainer) const {
  options.flip_labels = assignment.flip_labels;
  options.normalisation = assignment.normalisation;
  options.base = assignment.base;
  options.anchor = assignment.anchor;
  options.previous = assignment.previous;
  options.lambda = spec_.training.personal.lambda;
  options.epochs = assignment.epochs;
  options.max_steps = assignment.max_steps;
  options.round = assignment.round;
  options.stop = assignment.stop;
  options.finish = assignment.finish;
  const Rng rng = assignment.personal
                      ? rng_.fork("train-personal", assignment.round.value(), assignment.client.value())
                      : training_rng(assignment.client, assignment.round);
  return trainer.train(parameters, *data_, trained_on(assignment.client, assignment.data_share), rng,
                       options);
}

}  // namespace fedge::learn
