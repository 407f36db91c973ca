#include "server/live/round_record.h"

#include <algorithm>

#include "core/node.h"

namespace fedge::server {
namespace {

// Attempts at the statistics have numbers of their own.
bool in_one_round(TaskId a, TaskId b) {
  return a.round == b.round && (a.kind == TaskKind::kStatistics) == (b.kind == TaskKind::kStatistics);
}

}  // namespace

PhaseRecord& RoundRecorder::phase(TaskId task, Time now) {
  const auto known = std::ranges::find(phases_, task, &PhaseRecord::task);
  if (known != phases_.end()) return *known;
  return phases_.emplace_back(PhaseRecord{.task = task, .began = now});
}

void RoundRecorder::decided(const RunEngine::Input& input, const std::vector<RunEngine::Effect>& effects,
                            Time now) {
  if (const auto* committed = std::get_if<RunEngine::Committed>(&input)) commit(committed->task(), now);
  for (const RunEngine::Effect& effect : effects)
    std::visit(Overloaded{[&](const RunEngine::Assign& work) {
                            if (buffered_)
                              filling_ = filling_.value_or(now);
                            else
                              phase(work.task, now);
                          },
                          [&](const RunEngine::BeginSecure& sum) {
                            PhaseRecord& begun = phase(sum.task, now);
                            begun.secure = now;
                            begun.attempt = sum.attempt;
                          },
                          [&](const RunEngine::CloseRound& turn) { close(turn, now); },
                          [&](const RunEngine::Finished&) {
                            while (!phases_.empty()) end(phases_.front().task, /*stopped=*/true, now);
                          },
                          [](const auto&) {}},
               effect);
}

void RoundRecorder::close(const RunEngine::CloseRound& turn, Time now) {
  PhaseRecord& closed = phase(turn.task(), buffered_ ? filling_.value_or(now) : now);
  if (buffered_) filling_ = now;
  closed.closed = now;
  closed.selected = turn.selected;
  closed.completed = turn.completed;
  closed.ends_round = turn.ends_round || turn.kind == TaskKind::kStatistics;
}

void RoundRecorder::not_aggregated(TaskId task) {
  const auto known = std::ranges::find(phases_, task, &PhaseRecord::task);
  if (known != phases_.end()) known->aggregated = false;
}

void RoundRecorder::commit(TaskId task, Time now) {
  const auto known = std::ranges::find(phases_, task, &PhaseRecord::task);
  if (known == phases_.end() || !known->closed) return;
  known->committed = now;
  if (known->ends_round) end(task, /*stopped=*/false, now);
}

void RoundRecorder::end(TaskId task, bool stopped, Time now) {
  RoundRecord round{.task = task, .began = now, .ended = now, .stopped = stopped};
  for (const PhaseRecord& one : phases_) {
    if (!in_one_round(one.task, task)) continue;
    if (round.phases.empty()) round.task = one.task;
    round.began = std::min(round.began, one.began);
    round.phases.push_back(one);
  }
  std::erase_if(phases_, [&](const PhaseRecord& one) { return in_one_round(one.task, task); });
  ended_.push_back(std::move(round));
}

}  // namespace fedge::server
