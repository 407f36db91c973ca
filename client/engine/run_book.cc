#include "client/engine/run_book.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "core/check.h"

namespace fedge::client {

Result<void> ClientRun::check(const protocol::TrainRequest& request) const {
  if (masked && request.secure_attempt == 0)
    return Error{ErrorCode::kRefused,
                 "the run was announced with masked updates, but this task asks for an unmasked update"};
  const bool trains = request.kind == TaskKind::kTraining;
  if (request.kind == TaskKind::kEvaluation && evaluates.value() == 0)
    return Error{ErrorCode::kRefused, "this client evaluates no models in this run"};
  if (!trains && request.coverage.count() != 1)
    return invalid("a task of evaluation or statistics covers " + std::to_string(request.coverage.count()) +
                   " parameters, but its update consists of one");
  if (request.kind == TaskKind::kStatistics && request.round.value() > kMostStatistics)
    return Error{ErrorCode::kRefused,
                 "a client counts its data at most " + std::to_string(kMostStatistics) + " times in a run"};
  if (request.kind != TaskKind::kEvaluation && samples.value() == 0)
    return Error{ErrorCode::kRefused, "this client has no training samples in this run"};
  if (!masked && request.secure_attempt > 0)
    return Error{ErrorCode::kRefused,
                 "the run was announced without masked updates, but this task asks for a masked update"};
  return {};
}

void ClientRun::end_task() {
  task.reset();
  offer.reset();
  work = Work::kIdle;
}

const ClientRun* RunBook::find(RunId id) const {
  const auto run = std::ranges::find(runs_, id, &ClientRun::id);
  return run == runs_.end() ? nullptr : &*run;
}

ClientRun* RunBook::find(RunId id) { return const_cast<ClientRun*>(std::as_const(*this).find(id)); }

ClientRun* RunBook::at_work(RunId id, TaskId task, ClientRun::Work work) {
  ClientRun* run = find(id);
  return run != nullptr && run->work == work && run->has(task) ? run : nullptr;
}

ClientRun& RunBook::add(RunId id) {
  FEDGE_CHECK(!full() && find(id) == nullptr, "a client has each run once, and a bounded number of them");
  ClientRun& run = runs_.emplace_back();
  run.id = id;
  return run;
}

void RunBook::assign(ClientRun& run, const protocol::TrainRequest& request, Time now) {
  run.task = request;
  run.seen = request.round;
  run.asked = now;
  run.turn = ++turns_;
}

ClientRun* RunBook::next_to_start() {
  ClientRun* first = nullptr;
  for (ClientRun& run : runs_) {
    if (run.work == ClientRun::Work::kFetching || run.work == ClientRun::Work::kTraining) return nullptr;
    if (run.work == ClientRun::Work::kWaiting && (first == nullptr || run.turn < first->turn)) first = &run;
  }
  return first;
}

void RunBook::remove_ended() {
  std::erase_if(
      runs_, [](const ClientRun& run) { return run.stage == ClientRun::Stage::kUndescribed && !run.task; });
}

std::vector<RunBook::Part> RunBook::parts() const {
  constexpr std::array kNames = {"idle", "preparing", "waiting", "fetching", "training", "offered"};
  std::vector<Part> parts;
  for (const ClientRun& run : runs_) {
    const bool rejected = run.stage == ClientRun::Stage::kRejected;
    const char* work = kNames.at(static_cast<std::size_t>(run.work));
    if (!run.task && run.stage == ClientRun::Stage::kPreparing) work = "preparing";
    if (!run.task && rejected) work = "rejected";
    const auto task = run.task ? std::optional(run.task->task()) : std::nullopt;
    parts.push_back({run.id, work, task, rejected ? run.rejection->message : ""});
  }
  return parts;
}

bool RunBook::takes_part() const {
  return std::ranges::any_of(runs_,
                             [](const ClientRun& run) { return run.stage != ClientRun::Stage::kRejected; });
}

std::optional<Time> RunBook::next_publication() const {
  std::optional<Time> next;
  for (const ClientRun& run : runs_)
    if (run.publish_at && (!next || *run.publish_at < *next)) next = run.publish_at;
  return next;
}

}  // namespace fedge::client
