#include "server/engine/buffered/buffered_engine.h"

#include <algorithm>
#include <utility>

#include "server/engine/round_events.h"

namespace fedge::server {

BufferedEngine::BufferedEngine(const RoundRules& rules, const aggregation::ScheduleSpec& schedule,
                               Deciders deciders)
    : rules_(rules),
      schedule_(schedule),
      barrier_(schedule.barrier),
      deciders_(std::move(deciders)),
      quarantine_(rules.quarantine) {}

void BufferedEngine::step(const Input& input, const StepContext& context, std::vector<Effect>& effects) {
  if (phase_ == Phase::kFinished && !std::holds_alternative<ClientArrived>(input)) return;
  std::visit([&](const auto& specific) { on(specific, context, effects); }, input);
}

std::optional<Time> BufferedEngine::next_deadline() const {
  std::optional<Time> earliest;
  if (filling()) earliest = fill_by_;
  if (return_by_ && (!earliest || *return_by_ < *earliest)) earliest = return_by_;
  for (const auto& [client, task] : tasks_)
    if (!earliest || task.deadline < *earliest) earliest = task.deadline;
  for (const ClientId client : resting_) {
    const Member& member = members_.at(client);
    if (member.present && (!earliest || *member.resting < *earliest)) earliest = member.resting;
  }
  return earliest;
}

void BufferedEngine::on(const ClientArrived& arrived, const StepContext& context,
                        std::vector<Effect>& effects) {
  if (phase_ == Phase::kFinished) {
    effects.push_back(Send{arrived.client, protocol::RunEnded{rules_.run, "the run has finished"}});
    return;
  }
  Member& member = members_[arrived.client];
  if (!member.present) catch_up(member);
  present_ += member.present ? 0 : 1;
  member.present = true;
  member.samples = std::min({arrived.samples, arrived.most, rules_.max_samples});
  member.said = arrived.samples;
  member.capability = arrived.capability;
  member.power = arrived.power;
  if (const auto task = tasks_.find(arrived.client); task != tasks_.end() && task->second.away) {
    task->second.away = false;
    returned_.insert(arrived.client);
  }
  assign(context, effects);
}

void BufferedEngine::on(const ClientLeft& left, const StepContext& context, std::vector<Effect>& effects) {
  const auto member = members_.find(left.client);
  if (member != members_.end() && std::exchange(member->second.present, false)) --present_;
  if (const auto task = tasks_.find(left.client); task != tasks_.end())
    end_task(task, "connection lost", effects);
  assign(context, effects);
}

void BufferedEngine::on(const Described& described, const StepContext&, std::vector<Effect>&) {
  deciders_.sampler->describe(described.client, with_known_labels(rules_, described.record));
}

void BufferedEngine::on(const Expired&, const StepContext& context, std::vector<Effect>& effects) {
  if (return_by_ && context.now >= *return_by_) give_up_waiting(effects);
  for (auto task = tasks_.begin(); task != tasks_.end();) {
    const auto late = task++;
    if (context.now < late->second.deadline) continue;
    effects.push_back(
        Send{late->first, protocol::CancelTask{rules_.run, late->second.number, "deadline", {}}});
    end_task(late, "deadline", effects);
  }
  wake(context);
  if (filling() && context.now >= fill_by_) {
    // Closes the buffer at its deadline with the updates received. Without updates and connected clients,
    // the deadline is extended instead.
    if (buffered_ > 0 || present_ > 0)
      close("deadline", effects);
    else
      fill_by_ = context.now + rules_.deadline;
  }
  assign(context, effects);
}

void BufferedEngine::wake(const StepContext& context) {
  const auto wake_those = [&](const auto& is_over) {
    for (auto next = resting_.begin(); next != resting_.end();) {
      const auto resting = next++;
      Member& member = members_.at(*resting);
      if (!is_over(member)) continue;
      catch_up(member);
      member.resting.reset();
      resting_.erase(resting);
    }
  };
  wake_those([&](const Member& member) { return context.now >= *member.resting; });
  const bool any = std::ranges::any_of(members_, [](const auto& each) { return each.second.available(); });
  if (any) return;
  // A client in quarantine rests for one deadline at least.
  wake_those([&](const Member& member) { return context.now - member.failed >= rules_.deadline; });
}

std::optional<RunEngine::Waiting> BufferedEngine::waiting() const {
  const std::size_t needed = std::max(rules_.first_round_clients, rules_.min_available);
  if (phase_ != Phase::kWaiting || present_ >= needed) return std::nullopt;
  return Waiting{round(), present_, needed};
}

void BufferedEngine::assign(const StepContext& context, std::vector<Effect>& effects) {
  if (phase_ == Phase::kWaiting) {
    if (waiting()) return;
    phase_ = Phase::kRunning;
    fill_by_ = context.now + rules_.deadline;
    // In order of client number, so that the order of arrival does not matter.
    for (const auto& [client, member] : members_)
      if (member.present) deciders_.planner->admit(client, member.capability);
  }
  // No model can be assigned while one is being aggregated.
  if (phase_ != Phase::kRunning || all_moves_made() || committed_ != moves_) return;
  hand_out_again(context, effects);
  if (tasks_.size() >= rules_.clients_per_round) return;
  const std::vector<aggregation::Candidate> candidates = idle(context);
  const std::size_t free = rules_.clients_per_round - tasks_.size();
  const auto chosen = deciders_.sampler->select({.round = round(),
                                                 .candidates = candidates,
                                                 .count = free,
                                                 .rng = context.rng.fork("sample", assigned_)});
  for (const auto& choice : chosen) {
    const ClientId client = choice.client;
    Member& member = members_.at(client);
    const RoundNumber number(++member.tasks);
    deciders_.planner->admit(client, member.capability);
    if (member.power) deciders_.planner->describe(client, *member.power);
    const aggregation::PlanRequest request{.round = number,
                                           .client = client,
                                           .rng = context.rng.fork("plan", number.value(), client.value()),
                                           .samples = member.said};
    Task task{.number = number,
              .model = moves_,
              .coverage = deciders_.planner->plan(request),
              .effort = deciders_.planner->effort(request),
              .assigned = context.now,
              .deadline = context.now + rules_.deadline,
              .offer = {}};
    effects.push_back(Assign{.client = client,
                             .task = name_of(task),
                             .coverage = task.coverage,
                             .time_left = rules_.deadline,
                             .last_round = member.last_round,
                             .effort = task.effort});
    tasks_[client] = std::move(task);
    ++assigned_;
  }
}

void BufferedEngine::hand_out_again(const StepContext& context, std::vector<Effect>& effects) {
  for (const ClientId client : std::exchange(returned_, {})) {
    const auto task = tasks_.find(client);
    if (task == tasks_.end() || task->second.fetching) continue;
    effects.push_back(Assign{.client = client,
                             .task = name_of(task->second),
                             .coverage = task->second.coverage,
                             .time_left = task->second.deadline - context.now,
                             .last_round = members_.at(client).last_round,
                             .again = true,
                             .effort = task->second.effort});
  }
}

// Liveness: an available client with the fewest steps either holds a task, which ends by its deadline, or
// passes the barrier. So while there is no task, some client is a candidate and every place is free.
std::vector<aggregation::Candidate> BufferedEngine::idle(const StepContext& context) const {
  std::vector<std::uint64_t> steps;
  if (!barrier_.never_waits())
    for (const auto& [client, member] : members_)
      if (member.available()) steps.push_back(member.steps);
  const aggregation::Progress progress(std::move(steps));
  std::vector<aggregation::Candidate> result;
  std::size_t places = 0;
  for (const auto& [client, member] : members_) {
    if (!member.available()) continue;
    const std::size_t place = places++;
    if (tasks_.contains(client)) continue;
    // Forked by ended_: a client samples other clients again only after a task has ended.
    if (barrier_.never_waits() ||
        barrier_.may_begin(place, progress, context.rng.fork("barrier", ended_, client.value())))
      result.push_back({client, member.samples});
  }
  return result;
}

void BufferedEngine::catch_up(Member& member) const {
  if (barrier_.never_waits()) return;
  std::optional<std::uint64_t> least;
  for (const auto& [client, other] : members_)
    if (&other != &member && other.available()) least = std::min(other.steps, least.value_or(other.steps));
  member.steps = std::max(member.steps, least.value_or(0));
}

void BufferedEngine::close(const std::string& reason, std::vector<Effect>& effects) {
  const bool full = buffered_ >= schedule_.buffer_size;
  effects.push_back(Event{full ? Severity::kInfo : Severity::kWarning, "buffer.closed", {}}
                        .with("round", std::int64_t{round().value()})
                        .with("reason", reason)
                        .with("completed", static_cast<std::int64_t>(buffered_)));
  effects.push_back(CloseRound{.round = round(),
                               .selected = assigned_ - assigned_before_,
                               .completed = buffered_,
                               .train_loss = samples_ > 0 ? loss_ / samples_ : 0.0,
                               .track = {},
                               .description = nullptr,
                               .energy = std::exchange(energy_, {})});
  assigned_before_ = assigned_;
  ++moves_;
  buffered_ = 0;
  loss_ = 0;
  samples_ = 0;
  if (!all_moves_made()) return;
  for (auto task = tasks_.begin(); task != tasks_.end(); task = tasks_.begin()) {
    effects.push_back(
        Send{task->first, protocol::CancelTask{rules_.run, task->second.number, "the run has ended", {}}});
    if (task->second.fetching) effects.push_back(Discard{task->first, name_of(task->second)});
    tasks_.erase(task);
  }
}

void BufferedEngine::on(const Committed& committed, const StepContext& context,
                        std::vector<Effect>& effects) {
  if (committed.ends) return finish(kReached, effects);
  ++committed_;
  fill_by_ = context.now + rules_.deadline;
  if (all_moves_made() && committed_ == moves_) return finish(kAllRoundsDone, effects);
  assign(context, effects);
}

// Ends the run if clients disagree: without rounds there are no tracks, and one model for all would break
// the policy.
void BufferedEngine::on(const PolicyChanged& changed, const StepContext&, std::vector<Effect>& effects) {
  if (!changed.policy.disagreements.empty())
    finish("the policy has disagreements between clients, but an asynchronous run trains only one model",
           effects);
}

void BufferedEngine::on(const Stop& stop, const StepContext&, std::vector<Effect>& effects) {
  finish(stop.reason, effects);
}

// A coordinator restart ends no task. A client that lost its task restarts from the current model;
// staleness still counts from the first assignment.
void BufferedEngine::on(const Restarted&, const StepContext& context, std::vector<Effect>& effects) {
  effects.push_back(Event{Severity::kInfo, "run.resumed", {}}.with("round", std::int64_t{round().value()}));
  for (auto& [client, member] : members_) member.present = false;
  present_ = 0;
  returned_.clear();
  for (auto& [client, task] : tasks_) {
    task.away = true;
    task.fetching = false;
    task.deadline = context.now + rules_.deadline;
  }
  return_by_ = context.now + rules_.return_within;
  fill_by_ = context.now + rules_.deadline;
}

void BufferedEngine::give_up_waiting(std::vector<Effect>& effects) {
  return_by_.reset();
  for (auto next = tasks_.begin(); next != tasks_.end();)
    if (const auto task = next++; task->second.away)
      end_task(task, "the client did not reconnect in time", effects);
}

void BufferedEngine::finish(const std::string& reason, std::vector<Effect>& effects) {
  phase_ = Phase::kFinished;
  tasks_.clear();
  Finished finished{.reason = reason, .connected = {}};
  for (const auto& [client, member] : members_)
    if (member.present) finished.connected.push_back(client);
  effects.push_back(std::move(finished));
}

}  // namespace fedge::server
