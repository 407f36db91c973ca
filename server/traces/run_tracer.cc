#include "server/traces/run_tracer.h"

#include "core/text.h"

namespace fedge::server {
namespace {

constexpr std::size_t kMostReasonBytes = 200;

}  // namespace

RunTracer::RunTracer(TracedRun run, std::function<void(TracePart)> out, std::function<Time()> calendar)
    : run_(std::make_shared<const TracedRun>(std::move(run))),
      out_(std::move(out)),
      calendar_(std::move(calendar)) {}

Duration RunTracer::anchor(TaskId task, Time now) {
  const bool counts = task.kind == TaskKind::kStatistics;
  const TaskId round{task.round, {}, counts ? TaskKind::kStatistics : TaskKind::kTraining};
  if (!anchor_ || anchor_->first != round) anchor_.emplace(round, calendar_() - now);
  return anchor_->second;
}

void RunTracer::closed(TaskId phase, std::vector<WatchedTask> tasks, Time now) {
  for (WatchedTask& task : tasks) {
    task.reason = clean_text(task.reason, kMostReasonBytes);
    if (!run_->buffered || task.stage != TaskStage::kAccepted) continue;
    std::vector<WatchedTask>& linked = linked_[phase.round];
    if (linked.size() < kMostLinks) linked.push_back(task);
  }
  out_({.run = run_, .unix_time = anchor(phase, now), .phase = phase, .tasks = std::move(tasks)});
}

void RunTracer::ended(RoundRecord round, Time now) {
  const TaskId task = round.task;
  auto linked = linked_.extract(task.round);
  out_({.run = run_,
        .unix_time = anchor(task, now),
        .phase = task,
        .tasks = linked.empty() ? std::vector<WatchedTask>() : std::move(linked.mapped()),
        .round = std::move(round)});
}

WatchRecords records_for(std::shared_ptr<RunTracer> tracer) {
  return {.on_tasks = [tracer](TaskId phase, std::vector<WatchedTask> tasks,
                               Time now) { tracer->closed(phase, std::move(tasks), now); },
          .on_round = [tracer](RoundRecord round, Time now) { tracer->ended(std::move(round), now); }};
}

}  // namespace fedge::server
