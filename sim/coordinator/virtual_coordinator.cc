#include "sim/coordinator/virtual_coordinator.h"

#include "server/engine/round_events.h"

#include <utility>

namespace fedge::sim {
namespace {

// What the client's own log would say: it has failed before its update could travel.
Event failure_of(ClientId client, TaskId task, const Error& error) {
  return Event{Severity::kError, "task.failed", {}}
      .with("client", std::int64_t{client.value()})
      .with("round", std::int64_t{task.round.value()})
      .with("reason", error.message);
}

}  // namespace

VirtualCoordinator::VirtualCoordinator(const Surroundings& surroundings, server::Conductor::Setup setup,
                                       std::unique_ptr<server::RunEngine> engine, server::Ports ports)
    : surroundings_(surroundings), conductor_(std::move(setup), std::move(engine), [&] {
        ports.gate = this;
        ports.owner = this;
        return ports;
      }()) {}

void VirtualCoordinator::update_arrived(ClientId client, TaskId task) {
  const Time now = surroundings_.world.now();
  if (surroundings_.energy != nullptr && task.kind == TaskKind::kTraining)
    surroundings_.energy->task_ends(client, now);
  const auto computed = surroundings_.updates.arrived(client, task);
  if (!computed) return surroundings_.world.fail(computed.error());
  const TrainedUpdate* update = *computed;
  if (update == nullptr) return;  // the client has dropped it meanwhile
  if (update->failure) {
    surroundings_.world.report(failure_of(client, task, *update->failure));
    return conductor_.uploaded(client, task, *update->failure, now);
  }
  const auto sound = surroundings_.masked ? Result<void>() : surroundings_.aggregate.inspect(client, *update);
  if (!sound && sound.error().code != ErrorCode::kInvalid)
    return surroundings_.world.fail(sound.error());  // of the spool
  if (!surroundings_.on_arrival) return conductor_.uploaded(client, task, sound, now);
  protocol::UpdateOffer reported;
  describe(*update, reported);
  conductor_.uploaded(client, task, sound, now, reported);
}

Result<void> VirtualCoordinator::inspect(ClientId client, TaskId task) {
  const auto update = surroundings_.updates.arrived(client, task);
  if (!update) surroundings_.world.fail(update.error());
  if (!update) return update.error();
  if (*update == nullptr) return invalid("its client has dropped it");
  const auto sound = surroundings_.aggregate.inspect_and_hold(client, **update);
  if (!sound && sound.error().code != ErrorCode::kInvalid) surroundings_.world.fail(sound.error());
  return sound;
}

server::RunState::Circumstances VirtualCoordinator::end_round() {
  round_closed_ = surroundings_.world.now();
  const ClientLinks::Traffic traffic = surroundings_.links.take_traffic();
  const ClientLinks::Traffic values =
      surroundings_.split != nullptr ? surroundings_.split->take_traffic() : ClientLinks::Traffic();
  return {.traffic = {traffic.up, traffic.down, values.up, values.down},
          .virtual_seconds = to_seconds(round_closed_),
          .wall_seconds = wall().count(),
          .energy = energy_of_round()};
}

std::optional<server::EnergyFigures> VirtualCoordinator::energy_of_round() {
  EnergyMeter* const energy = surroundings_.energy;
  if (energy == nullptr) return std::nullopt;
  energy->settle(round_closed_);
  const EnergyMeter::Round round = energy->take_round();
  const auto joules = [&](EnergyUse use) { return joules_of(round.by_use[static_cast<std::size_t>(use)]); };
  server::EnergyFigures figures;
  std::int64_t sum = 0;
  for (const std::int64_t microjoules : round.by_use) sum += microjoules;
  figures.joules = joules_of(sum);
  figures.computing_joules = joules(EnergyUse::kComputing);
  figures.radio_joules = joules(EnergyUse::kSending) + joules(EnergyUse::kReceiving);
  figures.awake_joules = joules(EnergyUse::kAwake);
  if (round.tasks > 0) {
    figures.task_joules = round.task_sum / static_cast<double>(round.tasks);
    figures.largest_task_joules = round.largest_task;
  }
  figures.fairness = energy_fairness(energy->ledger());
  if (surroundings_.supply != nullptr) {
    const PowerSupply::Levels levels = surroundings_.supply->levels();
    figures.battery_mean = levels.mean;
    figures.battery_lowest = levels.lowest;
    figures.without_power = static_cast<double>(levels.without_power);
  }
  return figures;
}

void VirtualCoordinator::report_waiting(Time until) {
  const auto due = waiting_report_.due();
  if (!due || *due > until) return;
  World& world = surroundings_.world;
  world.advance(*due);
  world.report(event_of(waiting_report_.take(world.now())));
}

void VirtualCoordinator::settled(bool stepped) {
  arm_timer();
  if (!stepped) return;
  const Time now = surroundings_.world.now();
  waiting_report_.note(engine().waiting(), now);
  report_waiting(now);
}

void VirtualCoordinator::arm_timer() {
  const auto deadline = conductor_.next_deadline();
  if (!deadline || timer_ == deadline) return;
  timer_ = deadline;
  surroundings_.world.at(*deadline, [this] { conductor_.expired(surroundings_.world.now()); });
}

}  // namespace fedge::sim
