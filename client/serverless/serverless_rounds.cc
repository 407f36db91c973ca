#include "client/serverless/serverless_rounds.h"

#include <utility>

namespace fedge::client {

bool ServerlessRounds::concerns(const protocol::Message& message) {
  return std::holds_alternative<protocol::ServerlessUpdate>(message) ||
         std::holds_alternative<protocol::AggregateUpdates>(message) ||
         std::holds_alternative<protocol::WarmupPlan>(message) ||
         std::holds_alternative<protocol::WarmupSlot>(message) ||
         std::holds_alternative<protocol::WarmupOver>(message);
}

template <class Act>
void ServerlessRounds::at(RunId id, TaskId task, const Context& context, const Act& act) {
  const auto found = runs_.find(id);
  const protocol::TrainRequest* request = context.engine.task(id);
  if (found == runs_.end() || request == nullptr || request->task() != task) return;
  Run& run = found->second;
  if (!run.round || run.round->task() != task) {
    run.round = std::make_unique<RoundUpdates>(id, task, run.name);
    // With a finished update, from before a restart, the model is not fetched for training.
    if (context.engine.holds_update(id)) context.ports.peers->hold_model(*request);
  }
  act(*run.round, RoundUpdates::Context{context.ports, *request});
}

void ServerlessRounds::receive(const protocol::Message& message, const Context& context) {
  const auto to_round = [&](const auto& specific) {
    at(specific.run, specific.task(), context,
       [&](RoundUpdates& round, const auto& of_round) { round.take(specific, of_round); });
  };
  std::visit(Overloaded{[&](const protocol::ServerlessUpdate& m) {
                          at(m.run, m.task(), context, [&](RoundUpdates& round, const auto& of_round) {
                            const protocol::UpdateOffer* own = context.engine.offer(m.run);
                            round.take(m, own != nullptr && own->update.id() == m.update.id(), of_round);
                          });
                        },
                        [&](const protocol::WarmupPlan& m) {
                          at(m.run, m.task(), context, [&](RoundUpdates& round, const auto& of_round) {
                            if (const protocol::UpdateOffer* own = context.engine.offer(m.run))
                              round.take(m, own->update.id(), of_round);
                          });
                        },
                        [&](const protocol::AggregateUpdates& m) { to_round(m); },
                        [&](const protocol::WarmupSlot& m) { to_round(m); },
                        [&](const protocol::WarmupOver& m) { to_round(m); }, [](const auto&) {}},
             message);
}

void ServerlessRounds::fetched(RunId run, TaskId task, const Context& context) {
  at(run, task, context, [](RoundUpdates& round, const auto& of_round) { round.begin(of_round); });
}

void ServerlessRounds::answered(const RoundStep& step, const Context& context) {
  const auto found = runs_.find(step.run);
  if (found == runs_.end() || !found->second.round || found->second.round->task() != step.task) return;
  at(step.run, step.task, context,
     [&](RoundUpdates& round, const auto& of_round) { round.answered(step, of_round); });
}

void ServerlessRounds::end(RunId run, const Ports& ports) {
  const auto found = runs_.find(run);
  if (found == runs_.end()) return;
  if (const auto round = std::exchange(found->second.round, nullptr)) round->end(ports);
}

void ServerlessRounds::power_cut() {
  for (auto& [id, run] : runs_) run.round.reset();
}

}  // namespace fedge::client
