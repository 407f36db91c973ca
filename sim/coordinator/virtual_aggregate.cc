#include "sim/coordinator/virtual_aggregate.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "run/secure_update.h"
#include "sim/noise_key.h"

namespace fedge::sim {
namespace {

// Waiting updates that are folded in one pass over the accumulator; fewer if these bytes are reached before.
constexpr std::size_t kFoldTogether = 8;
constexpr std::size_t kBytesTogether = std::size_t{8} << 20;
constexpr std::size_t kMostWaiting = 64;  // with those whose values are not here

}  // namespace

Result<void> VirtualAggregate::inspect(ClientId client, const TrainedUpdate& update) {
  if (surroundings_.log.replaying()) return surroundings_.log.take_verdict();
  const auto norm = update.inspected ? *update.inspected
                                     : run::inspect_values(surroundings_.state.value_rules(), update.coverage,
                                                           *update.values);
  if (!norm && norm.error().code != ErrorCode::kInvalid) return norm.error();
  surroundings_.log.put_verdict(norm ? Result<void>() : norm.error());
  if (!norm) return norm.error();
  norms_[client] = *norm;
  return {};
}

Result<void> VirtualAggregate::inspect_and_hold(ClientId client, const TrainedUpdate& update) {
  FEDGE_TRY_VOID(inspect(client, update));
  held_.insert_or_assign(client, update);
  return {};
}

Result<SharedState> VirtualAggregate::global(TrackId track) {
  if (global_) return global_;
  GlobalState state{.version = ++versions_};
  if (!surroundings_.log.replaying()) {
    const run::TrackModel& source = surroundings_.state.track(track);
    FEDGE_TRY(model, source.load());
    if (source.control_object()) {
      FEDGE_TRY(control, source.load_control());
      state.control = std::make_shared<const ParameterVector>(std::move(control));
    }
    state.model = std::make_shared<const ParameterVector>(std::move(model));
  }
  server::TrackView view = this->view(track);
  if (!view.edges.empty() || !view.normalisation.empty())
    state.statistics = std::make_shared<const StatisticsGiven>(
        StatisticsGiven{std::move(view.edges), std::move(view.normalisation)});
  global_ = std::make_shared<GlobalState>(std::move(state));
  return global_;
}

server::TrackView VirtualAggregate::view(TrackId track) const {
  if (!surroundings_.log.replaying()) {
    server::TrackView view = surroundings_.state.view(track);
    surroundings_.log.put_view(track, view);
    return view;
  }
  auto view = surroundings_.log.take_view(track);
  if (view) return std::move(*view);
  surroundings_.on_failure(view.error());
  static const protocol::Manifest kNone;
  return {.model = &kNone, .live_tracks = {}};
}

Result<void> VirtualAggregate::start(const server::RunEngine::StartTrack& start) {
  descriptions_[start.track] = start.description;
  return surroundings_.log.replaying() ? Result<void>() : surroundings_.state.start(start);
}

void VirtualAggregate::retire(TrackId track) {
  descriptions_.erase(track);
  if (!surroundings_.log.replaying()) surroundings_.state.retire(track);
  surroundings_.updates.forget(track);
}

void VirtualAggregate::add(const server::RunEngine::Fold& accepted, TrainedUpdate update) {
  if (update.fault) report_fault(accepted, *update.fault);
  if (surroundings_.adversary != nullptr) surroundings_.adversary->taken(accepted.client, update.values);
  track_ = accepted.task.track;
  const double norm = norms_.extract(accepted.client).mapped();
  note(accepted, norm);
  waiting_.push_back({.client = accepted.client,
                      .weight = accepted.weight,
                      .steps = accepted.steps,
                      .norm = norm,
                      .factor = accepted.factor,
                      .loss = accepted.loss,
                      .coverage = std::move(update.coverage),
                      .values = std::move(update.values),
                      .elsewhere = update.elsewhere});
}

void VirtualAggregate::fold(const server::RunEngine::Fold& accepted) {
  if (surroundings_.log.replaying()) return surroundings_.updates.drop(accepted.client);
  add(accepted, surroundings_.updates.take(accepted.client));
  // The values of some updates are with other ranks.
  const auto here = static_cast<std::size_t>(
      std::ranges::count_if(waiting_, [](const auto& update) { return update.values != nullptr; }));
  const std::size_t bytes = here * waiting_.back().coverage.count() * sizeof(float);
  if (here >= kFoldTogether || bytes >= kBytesTogether || waiting_.size() >= kMostWaiting) flush();
}

void VirtualAggregate::folded_by_clients(const server::RunEngine::Fold& accepted) {
  if (surroundings_.updates.has(accepted.client, accepted.task)) surroundings_.updates.drop(accepted.client);
  TrainedUpdate update = std::move(held_.extract(accepted.client).mapped());
  if (!surroundings_.log.replaying()) add(accepted, std::move(update));
}

void VirtualAggregate::count(const server::RunEngine::Count& zeros) {
  if (surroundings_.log.replaying()) return;
  track_ = zeros.task.track;
  waiting_.push_back({.client = zeros.client,
                      .weight = zeros.weight,
                      .coverage = surroundings_.state.changed_by(zeros.coverage),
                      .values = nullptr});
  if (waiting_.size() >= kFoldTogether) flush();
}

void VirtualAggregate::note(const server::RunEngine::Fold& accepted, double norm) {
  if (surroundings_.participants == nullptr || accepted.task.kind != TaskKind::kTraining) return;
  const bool masked = std::isnan(norm);
  surroundings_.participants->add(
      Participants::Training{.track = accepted.task.track,
                             .client = accepted.client,
                             .samples = accepted.weight.value(),
                             .steps = accepted.steps,
                             .arrived = surroundings_.now(),
                             .loss = masked ? Participants::kUnknown : accepted.loss,
                             .norm = norm});
}

void VirtualAggregate::note_evaluations(const server::RunEngine::CloseRound& turn) {
  if (surroundings_.participants == nullptr || turn.kind != TaskKind::kEvaluation) return;
  for (const server::ClientSums& one : turn.sums) {
    const auto metrics = surroundings_.state.client_metrics(one.sums);
    if (!metrics || metrics->samples == 0) continue;
    surroundings_.participants->add(
        Participants::Evaluation{.track = turn.track,
                                 .client = one.client,
                                 .samples = metrics->samples,
                                 .loss = metrics->loss,
                                 .accuracy = metrics->accuracy,
                                 .rmse = metrics->rmse.value_or(Participants::kUnknown)});
  }
}

void VirtualAggregate::flush() {
  if (waiting_.empty()) return;
  if (const auto folded = surroundings_.state.fold(track_, waiting_); !folded)
    surroundings_.on_failure(folded.error());
  waiting_.clear();
}

// Reports a fault as the client's own log would; no other party learns of it.
void VirtualAggregate::report_fault(const server::RunEngine::Fold& accepted, const Error& fault) const {
  surroundings_.on_event(Event{Severity::kError, "training.failed", {}}
                             .with("client", std::int64_t{accepted.client.value()})
                             .with("round", std::int64_t{accepted.task.round.value()})
                             .with("reason", fault.message));
}

// The scalars of the offer are placeholders: the update's own are masked here.
void VirtualAggregate::fold_masked(const server::RunEngine::Fold& accepted, std::vector<std::uint64_t>) {
  if (surroundings_.log.replaying()) return surroundings_.updates.drop(accepted.client);
  const TrainedUpdate update = surroundings_.updates.take(accepted.client);
  std::vector<float> values(update.coverage.count());
  if (const auto read = update.values->read(0, values); !read) return surroundings_.on_failure(read.error());
  const run::RunConfig& config = surroundings_.state.config();
  const Secret noise = client_noise_root(config.seed, accepted.client);
  const auto masked = run::mask_update(
      {.coverage = &update.coverage,
       .values = values,
       .samples = update.training.samples,
       .loss = update.training.mean_loss,
       .rounding = Rng(config.seed).fork("rounding", accepted.task.round.value(), accepted.client.value()),
       .noise = run::PrivateSum::Noise{&noise, accepted.task},
       .task_sums = update.sums},
      config.secure.masking, surroundings_.masking(accepted.client), surroundings_.parallel);
  if (!masked) return surroundings_.on_failure(masked.error());
  note(accepted, Participants::kUnknown);
  if (update.fault)
    report_fault(accepted, *update.fault);
  else if (masked->fault)
    report_fault(accepted, *masked->fault);
  const auto folded = surroundings_.state.fold_masked(
      accepted.client, {.coverage = &masked->coverage,
                        .read = [&](std::uint64_t first, std::span<std::byte> out) -> Result<void> {
                          std::memcpy(out.data(), masked->words.data() + first, out.size());
                          return {};
                        },
                        .scalars = masked->scalars});
  if (!folded) surroundings_.on_failure(folded.error());
}

Result<server::MaskedSum> VirtualAggregate::remove_masks(TaskId task, const privacy::Unmasking& unmasking) {
  FEDGE_TRY(sum, surroundings_.state.sum_up(task, unmasking));
  surroundings_.state.remove(sum);
  return server::MaskedSum{sum.train_loss, std::move(sum.bad_shares)};
}

void VirtualAggregate::sum_up(TaskId task, privacy::Unmasking unmasking) {
  RunLog& log = surroundings_.log;
  const auto sum = log.replaying() ? log.take_sum() : remove_masks(task, unmasking);
  log.put_sum(sum);
  conductor_->summed(sum, surroundings_.now());
}

Result<RunLog::Closing> VirtualAggregate::close_model(const server::RunEngine::CloseRound& turn,
                                                      const server::Made& made) {
  run::TrackModel& track = surroundings_.state.track(turn.track);
  SharedWork* const shared = surroundings_.shared;
  if (shared != nullptr && !shared->values_travel()) FEDGE_TRY_VOID(shared->all_reduce(track.round_sums()));
  FEDGE_TRY_VOID(surroundings_.state.close(turn));
  RunLog::Closing closing;
  if (std::holds_alternative<server::MadeByClients>(made)) closing.model = track.object()->manifest().id();
  if (const auto* none = std::get_if<server::NotMade>(&made))
    closing.not_made = none->reason;
  else if (turn.kind == TaskKind::kTraining)
    closing.not_made = track.not_aggregated();
  else if (!surroundings_.state.sums_made(turn))
    closing.not_made = Error{ErrorCode::kUnavailable, "no client has sent sums that can be added"};
  return closing;
}

// Whether the evaluation of the closed phase ends the run.
Result<bool> VirtualAggregate::ends_here(const server::RunEngine::CloseRound& turn) {
  const server::RunState& state = surroundings_.state;
  if (surroundings_.shared == nullptr) return state.ends_early();
  return surroundings_.shared->confirm(state.track(turn.track).hash(), state.ends_early(),
                                       state.config().selection.on() && turn.ends_round);
}

void VirtualAggregate::close(const server::RunEngine::CloseRound& turn, const server::Made& made) {
  const bool replaying = surroundings_.log.replaying();
  if (std::holds_alternative<server::NotMade>(made)) waiting_.clear();
  flush();
  held_.clear();
  if (global_ && surroundings_.late_are_lost && turn.kind == TaskKind::kTraining)
    surroundings_.updates.release(global_);
  global_.reset();
  if (surroundings_.adversary != nullptr) surroundings_.adversary->round_closed();
  if (turn.kind == TaskKind::kTraining) descriptions_[turn.track] = turn.description;
  if (!replaying) note_evaluations(turn);
  auto closing = replaying ? surroundings_.log.take_closing(turn) : close_model(turn, made);
  if (!closing) return surroundings_.on_failure(closing.error());
  if (closing->model) surroundings_.on_adopted(std::get<server::MadeByClients>(made), *closing->model);
  conductor_->aggregated(turn, closing->not_made, surroundings_.now());
  if (turn.ends_round) {
    const auto circumstances = surroundings_.circumstances();
    if (!replaying) surroundings_.on_round(surroundings_.state.end_round(circumstances));
    if (surroundings_.participants != nullptr && !replaying)
      if (const auto written = surroundings_.participants->end_round(); !written)
        return surroundings_.on_failure(written.error());
  }
  if (!replaying) {
    const auto ends = ends_here(turn);
    if (!ends) return surroundings_.on_failure(ends.error());
    closing->ends = *ends;
    surroundings_.log.put_closing(turn, *closing);
  }
  if (turn.ends_round && surroundings_.on_ended)
    if (const auto ended = surroundings_.on_ended(); !ended) return surroundings_.on_failure(ended.error());
  conductor_->closed(turn, !closing->not_made, closing->ends, surroundings_.now());
}

}  // namespace fedge::sim
