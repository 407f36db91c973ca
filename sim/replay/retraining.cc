#include "sim/replay/retraining.h"

#include <algorithm>
#include <atomic>
#include <span>

#include "client/prepared_run.h"
#include "run/stored_update.h"

namespace fedge::sim {
namespace {

// Enough to balance unequal sizes, few enough to bound memory.
constexpr std::size_t kUpdatesPerThread = 8;

// The difference between the retrained and the offered update; empty if they are equal.
std::string difference_of(const protocol::UpdateOffer& offered, const protocol::UpdateOffer& made) {
  if (offered.update != made.update) return "differs from the update that its data and the model produce";
  const auto figures = [](const protocol::UpdateOffer& offer) {
    return std::tuple(offer.samples, offer.steps, offer.train_loss, offer.norm, offer.loss_rms,
                      offer.wanted_share, offer.activation_correlation);
  };
  if (figures(offered) != figures(made))
    return "was offered with other metrics (samples, steps, loss or norm) than its data and the model "
           "produce";
  return {};
}

}  // namespace

Retraining::Retraining(const learn::Task& task, server::RunState& state, protocol::ChunkStore& store,
                       Parallel& parallel)
    : task_(task), state_(state), store_(store), parallel_(parallel) {
  for (std::size_t i = 0; i < parallel.width(); ++i)
    workers_.emplace_back(task, state.config().compression, state.config().seed);
}

void Retraining::assigned(ClientId client, const protocol::TrainRequest& request) {
  const run::TrackModel& track = state_.track(request.track);
  if (const auto before = assigned_.find(client);
      request.again && before != assigned_.end() && before->second.request.task() == request.task()) {
    before->second.models.push_back(track.object());
    return;
  }
  assigned_[client] = {.request = request, .models = {track.object()}, .control = track.control_object()};
}

void Retraining::offered(const server::RunEngine::Fetch& fetch) {
  offered_.insert_or_assign(fetch.client, fetch.offer);
}

Result<void> Retraining::accepted(const server::RunEngine::Fold& fold, bool counts) {
  // A client's next task continues from the memory of the previous one.
  const auto same = [&](const Waiting& other) { return other.fold.client == fold.client; };
  if (waiting_.size() >= workers_.size() * kUpdatesPerThread || std::ranges::any_of(waiting_, same))
    FEDGE_TRY_VOID(finish());
  auto task = assigned_.find(fold.client);
  auto offer = offered_.extract(fold.client);
  if (task == assigned_.end() || task->second.request.task() != fold.task || offer.empty() ||
      offer.mapped().task() != fold.task)
    return Error{ErrorCode::kCorrupt, "the journal stores an update of client " +
                                          std::to_string(fold.client.value()) +
                                          " that the client never offered"};
  waiting_.push_back({.fold = fold,
                      .task = std::move(task->second),
                      .offer = std::move(offer.mapped()),
                      .memory = {},
                      .outcome = {},
                      .counts = counts});
  assigned_.erase(task);
  return {};
}

Result<void> Retraining::finish() {
  std::vector<Waiting> group = std::exchange(waiting_, {});
  if (group.empty() || difference_) return {};
  Models models;
  for (Waiting& waiting : group) FEDGE_TRY_VOID(begin(waiting, models));
  // The assignment of tasks to threads does not affect the result.
  std::atomic<std::size_t> next{0};
  parallel_.for_each(std::min(workers_.size(), group.size()), [&](std::size_t thread) {
    for (std::size_t i = next++; i < group.size(); i = next++) train(group[i], models, workers_[thread]);
  });
  for (Waiting& waiting : group) {
    FEDGE_TRY_VOID(hand_on(waiting));
    if (difference_) break;
  }
  return {};
}

Result<void> Retraining::begin(Waiting& waiting, Models& models) {
  for (const auto& model : waiting.task.models) FEDGE_TRY_VOID(load(model, models));
  if (waiting.task.control) FEDGE_TRY_VOID(load(waiting.task.control, models));
  if (!workers_.front().remembers()) return {};
  FEDGE_TRY(
      memory,
      (memories_[{waiting.fold.client, waiting.fold.task.track}].load(waiting.task.request.last_round)));
  if (!memory)
    return Error{ErrorCode::kCorrupt, name(waiting) + " continues from task " +
                                          std::to_string(waiting.task.request.last_round.value()) +
                                          ", but the journal does not contain the update of that task"};
  waiting.memory = std::move(*memory);
  return {};
}

Result<void> Retraining::load(const std::shared_ptr<protocol::StoredObject>& object, Models& models) const {
  if (models.contains(object.get())) return {};
  ParameterVector values(state_.layout());
  FEDGE_TRY_VOID(object->read_bytes(0, std::as_writable_bytes(values.values())));
  models.emplace(object.get(), std::move(values));
  return {};
}

void Retraining::train(Waiting& waiting, const Models& models, client::LocalWork& worker) const {
  const protocol::TrainRequest& request = waiting.task.request;
  const bool partial = task_.spec().training.partial_work > 0;
  const learn::Normalisation normalisation = learn::normalisation_of(request.statistics);
  const client::WorkOrder order{.client = waiting.fold.client,
                                .round = request.round,
                                .data_share = request.data_share,
                                .coverage = request.coverage,
                                .control = waiting.task.control
                                               ? std::as_const(models).at(waiting.task.control.get()).values()
                                               : std::span<const float>(),
                                .max_steps = partial ? waiting.offer.steps : 0,
                                .stop = {},
                                .finish = {},
                                .track = request.track,
                                .normalisation = &normalisation,
                                .time_left = request.time_left,
                                .kept = request.effort.kept};
  const client::ClientMemory before = waiting.memory;
  for (const auto& model : waiting.task.models) {
    waiting.memory = before;
    auto made = worker.run(order, models.at(model.get()).values(), waiting.memory);
    waiting.outcome =
        made ? client::OutgoingUpdate::in_the_clear(std::move(*made), std::nullopt) : made.error();
    if (*waiting.outcome && difference_of(waiting.offer, (*waiting.outcome)->offer(request)).empty()) return;
  }
}

Result<void> Retraining::hand_on(Waiting& waiting) {
  ++updates_;
  const Result<client::OutgoingUpdate>& outcome = *waiting.outcome;
  if (!outcome) {
    difference_ = name(waiting) + " cannot be reproduced: " + outcome.error().message;
    return {};
  }
  const std::string difference = difference_of(waiting.offer, outcome->offer(waiting.task.request));
  if (!difference.empty()) {
    difference_ = name(waiting) + " " + difference;
    return {};
  }
  if (!waiting.counts) return {};
  protocol::Manifest shape = waiting.offer.update;
  std::span<const float> values = outcome->values();
  AlignedBuffer<float> joined;
  if (!outcome->above().empty()) {
    FEDGE_TRY(both, task_.split_layout().joined(shape.coverage, values, outcome->above()));
    joined = std::move(both);
    values = joined.span();
    shape.coverage = task_.changed_by(shape.coverage);
  }
  FEDGE_TRY(object, run::store_values(values, shape, store_));
  store_.remove(object->manifest().id());  // the values stay readable as long as they are referenced
  const server::RunEngine::Fold& fold = waiting.fold;
  aggregation::Update update{.client = fold.client,
                             .weight = fold.weight,
                             .steps = fold.steps,
                             .factor = fold.factor,
                             .loss = fold.loss,
                             .coverage = shape.coverage,
                             .values = std::make_shared<run::StoredValues>(std::move(object))};
  FEDGE_TRY(norm, run::inspect_values(state_.value_rules(), update.coverage, *update.values));
  update.norm = norm;
  if (workers_.front().remembers())
    FEDGE_TRY_VOID((memories_[{fold.client, fold.task.track}].save(std::move(waiting.memory))));
  return state_.fold(fold.task.track, {&update, 1});
}

void Retraining::forget(TrackId track) {
  std::erase_if(memories_, [&](const auto& entry) { return entry.first.second == track; });
}

std::string Retraining::name(const Waiting& waiting) const {
  const TaskId task = waiting.fold.task;
  const bool buffered = state_.config().strategy.schedule.buffered;
  return "client " + std::to_string(waiting.fold.client.value()) + "'s update of " +
         (buffered ? "its task " : "round ") + std::to_string(task.round.value()) +
         (task.track == TrackId() ? "" : " on track " + std::to_string(task.track.value()));
}

}  // namespace fedge::sim
