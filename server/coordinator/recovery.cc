#include "server/coordinator/recovery.h"

#include <utility>

namespace fedge::server {
namespace {

// Uses only the run's clock: the traffic and wall time of the earlier process are unknown.
RunState::Circumstances circumstances(Time time) {
  return {.virtual_seconds = to_seconds(time), .wall_seconds = to_seconds(time)};
}

}  // namespace

Result<Recovered> Recovery::run(Conductor& conductor) {
  FEDGE_TRY(checkpoint, parts_.store.checkpoint(parts_.run));
  checkpoint_ = std::move(checkpoint);
  if (checkpoint_) kept_rounds_ = checkpoint_->rounds;
  FEDGE_TRY(lines, parts_.store.metrics(parts_.run));
  for (const std::string& line : lines) {
    FEDGE_TRY(metrics, parse_metrics(line, "round " + std::to_string(result_.history.size() + 1) + ": "));
    result_.history.push_back(std::move(metrics));
  }
  FEDGE_TRY_VOID(read_inputs(parts_.store, parts_.run,
                             [&](JournalStep step) { return take(conductor, std::move(step)); }));
  if (is_kept())
    return Error{ErrorCode::kCorrupt, "the journal of run " + std::to_string(parts_.run.value()) +
                                          " ends before its last checkpoint; restore the data directory from "
                                          "a backup"};
  for (const auto& [client, manifest] : offered_) {
    FEDGE_TRY(object, parts_.updates.create(manifest));
    result_.arriving.push_back(std::move(object));
  }
  return std::move(result_);
}

Result<void> Recovery::take(Conductor& conductor, JournalStep step) {
  result_.entries = step.sequence;
  result_.time = step.time;
  if (result_.failure) return {};
  if (step.summed && conductor.makes_model()) FEDGE_TRY_VOID(take_up_sum(conductor, *step.summed));
  if (!step.input) return {};
  RunEngine::Input input = std::move(*step.input);
  if (const auto* stored = std::get_if<RunEngine::Stored>(&input)) {
    FEDGE_TRY(instead, checked(*stored, step.sequence));
    input = std::move(instead);
  }
  if (const auto* changed = std::get_if<RunEngine::PolicyChanged>(&input)) result_.policy = changed->policy;
  auto told = conductor.retell(input, step.time);
  if (told) told = outcome();
  if (std::holds_alternative<RunEngine::Committed>(input) && !result_.closed.empty())
    result_.closed.erase(result_.closed.begin());
  // The strategy failed in the earlier process, too, unless the checkpoint says otherwise.
  if (told || told.error().code != ErrorCode::kInvalid || is_kept()) return told;
  result_.failure = told.error();
  return {};
}

Result<void> Recovery::take_up_sum(Conductor& conductor, const SummedTurn& turn) {
  FEDGE_TRY_VOID(parts_.state.take_up_sum(turn));
  conductor.summed(MaskedSum{turn.offer.train_loss, {}}, result_.time);
  return outcome();
}

Result<RunEngine::Input> Recovery::checked(const RunEngine::Stored& stored, std::uint64_t sequence) {
  if (is_kept()) return RunEngine::Input(stored);
  const auto offered = offered_.find(stored.client);
  if (offered == offered_.end()) return RunEngine::Input(stored);  // the engine will discard it
  FEDGE_TRY(object, parts_.updates.create(offered->second));
  std::string why = "the stored update is missing or damaged on the disk";
  if (object->complete()) {
    FEDGE_TRY(upload, run::examine_update(object, parts_.state.value_rules(), parts_.updates));
    auto whole = parts_.state.split() ? parts_.halves.join(stored.client, stored.task.round, upload,
                                                           parts_.state, parts_.updates)
                                      : Result<run::StoredUpdate>(upload);
    if (whole) {
      uploads_.insert_or_assign(stored.client, std::move(*whole));
      return RunEngine::Input(stored);
    }
    why = whole.error().message;
  }
  result_.lost.push_back({sequence});
  result_.events.push_back(Event{Severity::kError, "update.lost", {}}
                               .with("client", std::int64_t{stored.client.value()})
                               .with("round", std::int64_t{stored.task.round.value()})
                               .with("reason", why + "; the client will be asked to send it again"));
  return RunEngine::Input(RunEngine::ClientLeft{stored.client});
}

void Recovery::fetch(const RunEngine::Fetch& offered) {
  offered_.insert_or_assign(offered.client, offered.offer.update);
}

Result<void> Recovery::start(const RunEngine::StartTrack& start) {
  descriptions_[start.track] = start.description;
  FEDGE_TRY_VOID(outcome());
  return is_kept() ? Result<void>() : parts_.state.start(start);
}

void Recovery::retire(TrackId track) {
  descriptions_.erase(track);
  if (!is_kept() && outcome()) parts_.state.retire(track);
}

void Recovery::count(const RunEngine::Count& unsent) {
  const aggregation::Update zeros{.client = unsent.client,
                                  .weight = unsent.weight,
                                  .coverage = parts_.state.changed_by(unsent.coverage),
                                  .values = nullptr};
  if (!is_kept()) step([&] { return parts_.state.fold(unsent.task.track, {&zeros, 1}); });
}

Result<void> Recovery::take_up(const RunEngine::Fold& accepted) {
  offered_.erase(accepted.client);
  if (is_kept()) return {};
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

bool Recovery::closed_before(const RunEngine::CloseRound& turn) {
  descriptions_[turn.track] = turn.description;
  const bool kept = is_kept();
  if (turn.ends_round) ++closed_rounds_;
  if (!kept) return false;
  result_.closed.push_back(turn);
  if (!is_kept()) step([&] { return parts_.state.restore(checkpoint_->state, descriptions_); });
  return true;
}

void Recovery::close(const RunEngine::CloseRound& turn, const Made&) {
  result_.closed.push_back(turn);
  step([&] { return parts_.state.close(turn); });
  if (turn.ends_round) step([&] { return keep(turn); });
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
