// RoundEngine, part 3: the phases in which clients answer with sums, and what follows a phase.
#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include "protocol/limits.h"
#include "server/engine/round_engine.h"
#include "server/engine/round_events.h"

namespace fedge::server {
namespace {

constexpr std::size_t kMostFailures = 3;  // of steps of the statistics, before the run ends

}  // namespace

void RoundEngine::go_on(bool made, const StepContext& context, std::vector<Effect>& effects) {
  if (kind_ == TaskKind::kStatistics) {
    if (made && ++steps_ == rules_.statistics->steps) kind_ = TaskKind::kTraining;
    if (!made && ++failures_ == kMostFailures)
      return finish("no client has sent statistics of its data, by which the run normalises", effects);
    phase_ = Phase::kWaiting;
    return start_round_if_possible(context, effects);
  }
  if (turn_ + 1 < tracks_.turns()) {
    ++turn_;
    return kind_ == TaskKind::kEvaluation ? evaluate_once_back(context, effects)
                                          : begin_turn(context, effects);
  }
  if (kind_ != TaskKind::kEvaluation && evaluation_due()) {
    kind_ = TaskKind::kEvaluation;
    turn_ = 0;
    return evaluate_once_back(context, effects);
  }
  kind_ = TaskKind::kTraining;
  if (round_.value() >= rules_.rounds) return finish(kAllRoundsDone, effects);
  if (budget_spent()) return finish("the privacy budget is spent", effects);
  phase_ = Phase::kWaiting;
  start_round_if_possible(context, effects);
}

// After a restart of the coordinator, clients may still return.
void RoundEngine::evaluate_once_back(const StepContext& context, std::vector<Effect>& effects) {
  phase_ = Phase::kWaiting;
  anew_ = true;
  start_round_if_possible(context, effects);
}

void RoundEngine::begin_sums(const StepContext& context, std::vector<Effect>& effects) {
  const bool counts = kind_ == TaskKind::kStatistics;
  phase_ = Phase::kSumming;
  clear_tasks();
  if (counts) ++counted_;
  std::vector<SumsPhase::Member> members;
  present_.each([&](ClientId client, const Roster::Entry& entry) {
    const SampleCount samples = counts ? entry.said : entry.evaluates;
    const bool trains = entry.said.value() > 0 || track().last_round(client).value() > 0;
    if (!counts && rules_.evaluation->apart && trains) return;
    if (samples.value() > 0 && tracks_.is_member(turn_, client) && tracks_.may_receive(turn_, client))
      members.push_back({client, samples, track().last_round(client)});
  });
  const std::size_t wanted = counts ? 0 : rules_.evaluation->clients;
  std::size_t most = wanted > 0 ? wanted : members.size();
  if (rules_.masked) most = std::min(most, protocol::kMaxSecureMembers);
  if (most < members.size()) {
    context.rng.fork(counts ? "counters" : "evaluators", current().round.value(), current().track.value())
        .shuffle(std::span(members));
    members.resize(most);
    std::ranges::sort(members, {}, &SumsPhase::Member::client);
  }
  sums_.emplace(SumsPhase::Setup{.rules = &rules_,
                                 .sums = counts ? &rules_.statistics->sums : &rules_.evaluation->sums,
                                 .task = current(),
                                 .attempt = rules_.masked ? ++attempt_ : 0,
                                 .ends_round = !counts && turn_ + 1 == tracks_.turns(),
                                 .description = counts ? nullptr : track().description},
                members, context.now, effects);
  close_sums();
}

void RoundEngine::close_sums() {
  if (!sums_->closed()) return;
  sums_.reset();
  phase_ = Phase::kClosing;
}

}  // namespace fedge::server
