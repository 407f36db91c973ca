#include "server/coordinator/recovery.h"

#include <utility>

namespace fedge::server {
namespace {

// Uses only the run's clock: the traffic and wall time of the earlier process are unknown.
RunState::Circumstances circumstances(Time time) {
  return {.virtual_seconds = to_seconds(time), .wall_seconds = to_seconds(time)};
}

}  // namespace

Result<Recovered> Recovery::run() {
  FEDGE_TRY(checkpoint, parts_.store.checkpoint(parts_.run));
  checkpoint_ = std::move(checkpoint);
  if (checkpoint_) kept_rounds_ = checkpoint_->rounds;
  FEDGE_TRY(lines, parts_.store.metrics(parts_.run));
  for (const std::string& line : lines) {
    FEDGE_TRY(metrics, parse_metrics(line, "round " + std::to_string(result_.history.size() + 1) + ": "));
    result_.history.push_back(std::move(metrics));
  }
  FEDGE_TRY_VOID(
      read_inputs(parts_.store, parts_.run, [this](JournalStep step) { return take(std::move(step)); }));
  if (is_kept())
    return Error{ErrorCode::kCorrupt, "the journal of run " + std::to_string(parts_.run.value()) +
                                          " ends before its last checkpoint; restore the data directory from "
                                          "a backup"};
  for (const auto& [client, manifest] : offered_) {
    if (is_serverless() || is_secure()) break;
    FEDGE_TRY(object, parts_.updates.create(manifest));
    result_.arriving.push_back(std::move(object));
  }
  for (const auto& manifest : masked_) {
    FEDGE_TRY(object, parts_.updates.create(manifest));
    parts_.updates.remove(object->manifest().id());
  }
  return std::move(result_);
}

Result<void> Recovery::take(JournalStep step) {
  result_.entries = step.sequence;
  result_.time = step.time;
  if (result_.failure) return {};
  if (step.summed && result_.unmade) FEDGE_TRY_VOID(take_up_sum(*step.summed));
  if (!step.input) return {};
  RunEngine::Input input = std::move(*step.input);
  if (const auto* stored = std::get_if<RunEngine::Stored>(&input)) {
    FEDGE_TRY(instead, checked(*stored, step.sequence));
    input = std::move(instead);
  }
  if (const auto* changed = std::get_if<RunEngine::PolicyChanged>(&input)) result_.policy = changed->policy;
  // Committed without a sum in the journal: the phase had produced no sum.
  if (std::holds_alternative<RunEngine::Committed>(input) && is_secure() && result_.unmade)
    FEDGE_TRY_VOID(carry_out(*std::exchange(result_.unmade, std::nullopt)));
  if (std::holds_alternative<RunEngine::Committed>(input) && !result_.closed.empty())
    result_.closed.erase(result_.closed.begin());
  if (result_.shared) note_departure(input);
  const auto applied = apply(input, step.time);
  // The strategy failed in the earlier process, too, unless the checkpoint says otherwise.
  if (applied || applied.error().code != ErrorCode::kInvalid || is_kept()) return applied;
  result_.failure = applied.error();
  return {};
}

Result<void> Recovery::apply(const RunEngine::Input& input, Time time) {
  std::vector<RunEngine::Effect> effects;
  FEDGE_TRY_VOID(parts_.engine.try_step(input, {time, rng_}, effects));
  for (const auto& effect : effects) FEDGE_TRY_VOID(perform(effect));
  return {};
}

Result<RunEngine::Input> Recovery::checked(const RunEngine::Stored& stored, std::uint64_t sequence) {
  if (result_.shared) result_.shared->settle(stored.client);
  if (is_kept() || is_serverless() || is_secure()) return RunEngine::Input(stored);
  const auto offered = offered_.find(stored.client);
  if (offered == offered_.end()) return RunEngine::Input(stored);  // the engine will discard it
  FEDGE_TRY(object, parts_.updates.create(offered->second));
  if (object->complete()) {
    FEDGE_TRY(upload, run::examine_update(object, parts_.state.value_rules(), parts_.updates));
    uploads_.insert_or_assign(stored.client, std::move(upload));
    return RunEngine::Input(stored);
  }
  result_.lost.push_back({sequence});
  result_.events.push_back(
      Event{Severity::kError, "update.lost", {}}
          .with("client", std::int64_t{stored.client.value()})
          .with("round", std::int64_t{stored.task.round.value()})
          .with("reason", std::string("the stored update is missing or damaged on the disk; the client will "
                                      "be asked to send it again")));
  return RunEngine::Input(RunEngine::ClientLeft{stored.client});
}

// Excludes clients that left before the aggregation began: they do not vote on the model.
void Recovery::note_departure(const RunEngine::Input& input) {
  if (const auto* left = std::get_if<RunEngine::ClientLeft>(&input); left != nullptr && !result_.unmade)
    result_.shared->leave(left->client);
  if (const auto* failed = std::get_if<RunEngine::Failed>(&input))
    if (result_.shared->dismisses(failed->failure)) result_.shared->give_up(failed->client);
}

void Recovery::share(const RunEngine::Effect& effect) {
  auto& shared = result_.shared;
  if (const auto* work = std::get_if<RunEngine::Assign>(&effect)) {
    if (!shared || shared->task() != work->task)
      shared.emplace(work->task, parts_.state.config().sampling.clients_per_round);
    shared->join(work->client);
  }
  if (!shared) return;
  if (const auto* missing = std::get_if<RunEngine::GiveUp>(&effect)) shared->give_up(missing->client);
  if (const auto* sent = std::get_if<RunEngine::Send>(&effect))
    if (shared->dismisses(sent->message)) shared->give_up(sent->client);
  if (std::holds_alternative<RunEngine::CloseRound>(effect)) shared->close();
  if (const auto* fetch = std::get_if<RunEngine::Fetch>(&effect))
    shared->offer(fetch->client, fetch->offer.update);
  if (const auto* dropped = std::get_if<RunEngine::Discard>(&effect)) shared->withdraw(dropped->client);
  if (const auto* accepted = std::get_if<RunEngine::Fold>(&effect)) shared->fold(*accepted);
}

Result<void> Recovery::perform(const RunEngine::Effect& effect) {
  if (is_serverless()) share(effect);
  if (const auto* fetch = std::get_if<RunEngine::Fetch>(&effect)) {
    offered_.insert_or_assign(fetch->client, fetch->offer.update);
    if (is_secure() && !is_kept()) masked_.push_back(fetch->offer.update);
  } else if (const auto* dropped = std::get_if<RunEngine::Discard>(&effect)) {
    offered_.erase(dropped->client);
  } else if (const auto* start = std::get_if<RunEngine::StartTrack>(&effect)) {
    descriptions_[start->track] = start->description;
    if (!is_kept()) return parts_.state.start(*start);
  } else if (const auto* retired = std::get_if<RunEngine::RetireTrack>(&effect)) {
    descriptions_.erase(retired->track);
    if (!is_kept()) parts_.state.retire(retired->track);
  } else if (const auto* accepted = std::get_if<RunEngine::Fold>(&effect)) {
    return fold(*accepted);
  } else if (const auto* unsent = std::get_if<RunEngine::Count>(&effect)) {
    const aggregation::Update zeros{
        .client = unsent->client, .weight = unsent->weight, .coverage = unsent->coverage, .values = nullptr};
    if (!is_kept()) return parts_.state.fold(unsent->task.track, {&zeros, 1});
  } else if (const auto* closed = std::get_if<RunEngine::CloseRound>(&effect)) {
    return close(*closed);
  } else if (std::holds_alternative<RunEngine::Finished>(effect)) {
    result_.finished = true;
  }
  return {};
}

Result<void> Recovery::fold(const RunEngine::Fold& accepted) {
  offered_.erase(accepted.client);
  if (is_kept() || is_serverless() || is_secure()) return {};
  auto upload = uploads_.extract(accepted.client);
  if (upload.empty())
    return Error{ErrorCode::kCorrupt, "the journal stores an update of client " +
                                          std::to_string(accepted.client.value()) +
                                          " that the client never offered"};
  const run::StoredUpdate& here = upload.mapped();
  const aggregation::Update update = update_of(accepted, here);
  FEDGE_TRY_VOID(parts_.state.fold(accepted.task.track, {&update, 1}));
  if (here.plain != here.arrived) parts_.updates.remove(here.plain->manifest().id());
  here.arrived->rest();
  here.plain->rest();
  result_.folded.push_back(here.arrived);
  return {};
}

Result<void> Recovery::close(const RunEngine::CloseRound& close) {
  descriptions_[close.track] = close.description;
  if ((is_serverless() || is_secure()) && !is_kept()) {
    result_.unmade = close;
    return {};
  }
  return carry_out(close);
}

Result<void> Recovery::take_up_sum(const SummedTurn& turn) {
  RunEngine::CloseRound close = *std::exchange(result_.unmade, std::nullopt);
  FEDGE_TRY_VOID(parts_.state.take_up_sum(turn));
  close.train_loss = turn.offer.train_loss;
  return carry_out(close);
}

Result<void> Recovery::carry_out(const RunEngine::CloseRound& close) {
  result_.closed.push_back(close);
  const bool kept = is_kept();
  if (close.ends_round) ++closed_rounds_;
  if (kept) {
    if (!is_kept()) return parts_.state.restore(checkpoint_->state, descriptions_);
    return {};
  }
  FEDGE_TRY_VOID(parts_.state.close(close));
  return close.ends_round ? keep(close) : Result<void>();
}

// Writes the checkpoint before the next round is aggregated.
Result<void> Recovery::keep(const RunEngine::CloseRound& close) {
  RoundMetrics metrics = parts_.state.end_round(circumstances(result_.time));
  FEDGE_TRY(saved, parts_.state.save());
  const Batch batch{.run = parts_.run,
                    .entries = {},
                    .checkpoint = Checkpoint{close.round.value(), std::move(saved), to_json(metrics)}};
  FEDGE_TRY_VOID(parts_.store.append({&batch, 1}));
  for (const auto& object : std::exchange(result_.folded, {})) parts_.updates.remove(object->manifest().id());
  result_.history.push_back(std::move(metrics));
  return {};
}

}  // namespace fedge::server
