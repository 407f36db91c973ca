#include "client/engine/run_book.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "core/check.h"
#include "core/tracing/trace_id.h"

namespace fedge::client {

bool is_expected(const protocol::TrainRequest& expected, const protocol::TrainRequest& request) {
  return request.task() == expected.task() && request.last_round == expected.last_round &&
         request.coverage == expected.coverage && request.data_share == expected.data_share &&
         request.statistics == expected.statistics;
}

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

void ClientRun::expect_next() {
  if (task->kind != TaskKind::kTraining) return;
  ahead.reset();
  // Values that this task changes are known only once the next model is there.
  if (!overlaps || task->next.empty() || !task->next.intersect(task->coverage).empty()) return;
  protocol::TrainRequest expected = *task;
  expected.last_round = expected.round;
  expected.round = RoundNumber(expected.round.value() + 1);
  expected.coverage = std::exchange(expected.next, {});
  expected.model = {};
  expected.control.reset();
  expected.time_left = {};
  expected.secure_attempt = 0;
  ahead = Ahead{std::move(expected)};
}

bool ClientRun::may_expect(const protocol::TrainRequest& request) const {
  return !ahead || request.kind != TaskKind::kTraining || is_expected(ahead->request, request);
}

bool ClientRun::has_trained(const protocol::TrainRequest& request) const {
  return ahead && ahead->work == Ahead::Work::kTrained && is_expected(ahead->request, request);
}

Event ClientRun::with_trace(Event event) const {
  return traced ? event.with("trace", trace_of(id, task->task())) : event;
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
  run.traced = traced_;
  return run;
}

void RunBook::assign(ClientRun& run, const protocol::TrainRequest& request, Time now) {
  run.task = request;
  run.seen = request.round;
  run.asked = now;
  run.turn = ++turns_;
}

bool RunBook::trains_ahead(const ClientRun& run) {
  return run.ahead && run.ahead->work == ClientRun::Ahead::Work::kTraining;
}

ClientRun* RunBook::next_to_start() {
  const auto ahead = std::ranges::find_if(runs_, trains_ahead);
  ClientRun* first = nullptr;
  for (ClientRun& run : runs_) {
    if (run.in_hand()) return nullptr;
    const bool may = ahead == runs_.end() || &run == &*ahead;
    if (may && run.work == ClientRun::Work::kWaiting && (first == nullptr || run.turn < first->turn))
      first = &run;
  }
  return first;
}

ClientRun* RunBook::next_to_train() {
  if (std::ranges::any_of(runs_, trains_ahead)) return nullptr;
  const auto fetched = std::ranges::find(runs_, ClientRun::Work::kFetched, &ClientRun::work);
  return fetched == runs_.end() ? nullptr : &*fetched;
}

ClientRun* RunBook::next_ahead() {
  ClientRun* first = nullptr;
  for (ClientRun& run : runs_) {
    if (run.in_hand() || trains_ahead(run)) return nullptr;
    if (first == nullptr && run.ahead && run.ahead->work == ClientRun::Ahead::Work::kWaiting) first = &run;
  }
  return first;
}

void RunBook::remove_ended() {
  std::erase_if(
      runs_, [](const ClientRun& run) { return run.stage == ClientRun::Stage::kUndescribed && !run.task; });
}

std::vector<RunBook::Part> RunBook::parts() const {
  constexpr std::array kNames = {"idle",    "preparing", "waiting", "fetching",
                                 "fetched", "training",  "offered"};
  std::vector<Part> parts;
  for (const ClientRun& run : runs_) {
    const bool rejected = run.stage == ClientRun::Stage::kRejected;
    const char* work = kNames.at(static_cast<std::size_t>(run.work));
    if (!run.task && run.stage == ClientRun::Stage::kPreparing) work = "preparing";
    if (!run.task && rejected) work = "rejected";
    const auto task = run.task ? std::optional(run.task->task()) : std::nullopt;
    const auto ahead = run.ahead ? std::optional(run.ahead->request.task()) : std::nullopt;
    parts.push_back({run.id, work, task, ahead, rejected ? run.rejection->message : ""});
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
