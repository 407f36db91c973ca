#include "client/conductor/task_conductor.h"

#include <utility>

namespace fedge::client {
namespace {

bool belongs_to_session(const protocol::Message& message) {
  return std::holds_alternative<protocol::SecureRoster>(message) ||
         std::holds_alternative<protocol::SecurePeerShares>(message) ||
         std::holds_alternative<protocol::SecureSurvivors>(message) ||
         std::holds_alternative<protocol::SecureConsents>(message);
}

}  // namespace

void TaskConductor::step(Input input, const Context& context) {
  if (busy_) return waiting_.push_back(std::move(input));
  busy_ = true;
  std::vector<Input> inputs;
  inputs.push_back(std::move(input));
  while (!inputs.empty()) {
    for (const Input& next : inputs) {
      Later later;
      std::visit([&](const auto& specific) { on(specific, context, later); }, next);
      // Grows while it is read: what follows from an input may have consequences itself.
      for (std::size_t i = 0; i < later.size(); ++i)
        step_engine(ClientEngine::Input(later[i]), context, later);
    }
    inputs = std::exchange(waiting_, {});
  }
  busy_ = false;
  context.ports.owner.settled();
}

void TaskConductor::on(const ClientEngine::Input& input, const Context& context, Later& later) {
  const auto* received = std::get_if<ClientEngine::Received>(&input);
  if (received != nullptr && belongs_to_session(received->message)) {
    if (sessions_) sessions_->receive(received->message, session_context(context, later));
    return;
  }
  if (received != nullptr && ServerlessRounds::concerns(received->message)) {
    if (rounds_) rounds_->receive(received->message, round_context(context));
    return;
  }
  if (const auto* model = std::get_if<ClientEngine::ModelFetched>(&input); model != nullptr && rounds_)
    rounds_->fetched(model->run, model->task, round_context(context));
  if (const auto* trained = std::get_if<ClientEngine::Trained>(&input); trained != nullptr && sessions_)
    sessions_->masked(trained->run, trained->task, session_context(context, later));
  step_engine(input, context, later);
}

void TaskConductor::on(const Prepared& prepared, const Context& context, Later& later) {
  if (prepared.masked) {
    if (!sessions_) sessions_ = std::make_unique<Sessions>(self_, context.ports);
    sessions_->prepared(prepared.run.run, prepared.masked);
  }
  if (prepared.serverless) {
    if (!rounds_) rounds_ = std::make_unique<ServerlessRounds>();
    rounds_->prepared(prepared.run.run, prepared.name);
  }
  step_engine(prepared.run, context, later);
}

void TaskConductor::on(const RoundStep& step, const Context& context, Later&) {
  if (rounds_) rounds_->answered(step, round_context(context));
}

void TaskConductor::on(const TrainedUnmasked& trained, const Context& context, Later& later) {
  if (sessions_)
    sessions_->trained(trained.run, trained.task, trained.update, session_context(context, later));
}

void TaskConductor::on(const KnownClientsWritten& known, const Context& context, Later& later) {
  if (sessions_)
    sessions_->known_clients_written(known.clients, known.written, session_context(context, later));
}

void TaskConductor::on(const SumWritten& sum, const Context& context, Later& later) {
  if (sessions_) sessions_->sum_written(sum.session, sum.written, session_context(context, later));
}

void TaskConductor::on(const PowerCut&, const Context& context, Later& later) {
  for (const ClientEngine::Part& part : engine_.parts()) {
    if (part.ahead) step_engine(ClientEngine::AheadEnded{part.run, *part.ahead, false}, context, later);
    if (part.task)
      step_engine(
          ClientEngine::TrainingFailed{
              part.run, *part.task, {ErrorCode::kUnavailable, "the device went down while it trained"}},
          context, later);
  }
  if (sessions_) sessions_->lose_secrets();
  if (rounds_) rounds_->power_cut();
}

void TaskConductor::step_engine(const ClientEngine::Input& input, const Context& context, Later& later) {
  std::vector<ClientEngine::Effect> effects;
  engine_.step(input, {context.now, context.rng}, effects);
  for (const ClientEngine::Effect& effect : effects) carry_out(effect, context);
  if (!sessions_) return;
  // A session of this task repeats its last message, perhaps over a new link: the coordinator may lack it.
  const auto* received = std::get_if<ClientEngine::Received>(&input);
  if (received != nullptr)
    if (const auto* request = std::get_if<protocol::TrainRequest>(&received->message))
      sessions_->repeat(*request, session_context(context, later));
  sessions_->follow(session_context(context, later));
}

void TaskConductor::carry_out(const ClientEngine::Effect& effect, const Context& context) {
  using Engine = ClientEngine;
  const Ports& ports = context.ports;
  std::visit(Overloaded{[&](const Engine::Connect&) { ports.coordinator.connect(); },
                        [&](const Engine::Disconnect& end) { ports.coordinator.disconnect(end.reason); },
                        [&](const Engine::Send& send) { ports.coordinator.send(send.message); },
                        [&](const Engine::PrepareRun& run) { ports.work.prepare(run.description); },
                        [&](const Engine::FetchModel& model) { ports.work.fetch(model); },
                        [&](const Engine::Train& training) { ports.work.train(training); },
                        [&](const Engine::TrainAhead& ahead) { ports.work.train_ahead(ahead); },
                        [&](const Engine::AbandonAhead& ahead) { ports.work.abandon_ahead(ahead.run); },
                        [&](const Engine::Publish& record) { ports.work.publish(record); },
                        [&](const Engine::Abandon& task) {
                          if (rounds_) rounds_->end(task.run, ports);
                          ports.work.abandon(task.run, task.task);
                        },
                        [&](const Engine::ForgetRun& over) {
                          if (sessions_) sessions_->forget(over.run);
                          if (rounds_) rounds_->forget(over.run);
                          ports.work.forget(over.run);
                        },
                        [&](const Engine::RunOver& over) { ports.owner.run_ended(over.rejection); },
                        [&](const Engine::Revoked& revoked) { ports.owner.revoked(revoked.reason); },
                        [&](const Engine::Finished&) { ports.owner.finished(); },
                        [&](const Event& event) { ports.owner.report(event); }},
             effect);
}

}  // namespace fedge::client
