// RoundEngine, part 3: the evaluation of a round's models, and what follows a phase.
#include <algorithm>
#include <span>
#include <vector>

#include "protocol/limits.h"
#include "server/engine/round_engine.h"

namespace fedge::server {

void RoundEngine::go_on(const StepContext& context, std::vector<Effect>& effects) {
  if (turn_ + 1 < tracks_.turns()) {
    ++turn_;
    return evaluates_ ? evaluate_once_back(context, effects) : begin_turn(context, effects);
  }
  if (!evaluates_ && evaluation_due()) {
    evaluates_ = true;
    turn_ = 0;
    return evaluate_once_back(context, effects);
  }
  evaluates_ = false;
  if (round_.value() >= rules_.rounds) return finish("all rounds are done", effects);
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

void RoundEngine::begin_evaluation(const StepContext& context, std::vector<Effect>& effects) {
  phase_ = Phase::kEvaluating;
  tasks_.clear();
  std::vector<EvaluationPhase::Evaluator> evaluators;
  present_.each([&](ClientId client, const Roster::Entry& entry) {
    if (entry.evaluates.value() > 0 && tracks_.is_member(turn_, client) && tracks_.may_receive(turn_, client))
      evaluators.push_back({client, entry.evaluates, track().last_round(client)});
  });
  std::size_t most = rules_.evaluation->clients > 0 ? rules_.evaluation->clients : evaluators.size();
  if (rules_.masked) most = std::min(most, protocol::kMaxSecureMembers);
  if (most < evaluators.size()) {
    context.rng.fork("evaluators", round_.value(), track().id.value()).shuffle(std::span(evaluators));
    evaluators.resize(most);
    std::ranges::sort(evaluators, {}, &EvaluationPhase::Evaluator::client);
  }
  evaluation_.emplace(EvaluationPhase::Setup{.rules = &rules_,
                                             .task = current(),
                                             .attempt = rules_.masked ? ++attempt_ : 0,
                                             .ends_round = turn_ + 1 == tracks_.turns(),
                                             .description = track().description},
                      evaluators, context.now, effects);
  close_evaluation();
}

void RoundEngine::close_evaluation() {
  if (!evaluation_->closed()) return;
  evaluation_.reset();
  phase_ = Phase::kClosing;
}

}  // namespace fedge::server
