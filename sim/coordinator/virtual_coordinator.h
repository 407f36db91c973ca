// VirtualCoordinator: the run's conductor in virtual time, with its timer, its checks of updates and its
// reports. It is the conductor's Gate and Owner; the other ports are objects of their own. One thread.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "server/conductor/conductor.h"
#include "server/run_state.h"
#include "sim/availability/waiting_report.h"
#include "sim/coordinator/virtual_aggregate.h"
#include "sim/energy/energy_meter.h"
#include "sim/energy/power_supply.h"
#include "sim/split/virtual_split.h"
#include "sim/training/training_pool.h"
#include "sim/transfers/client_links.h"
#include "sim/world.h"

namespace fedge::sim {

class VirtualCoordinator final : private server::Gate, private server::Owner {
 public:
  struct Surroundings {
    World& world;
    ClientLinks& links;
    VirtualSplit* split;  // null: devices train the whole model
    EnergyMeter* energy;  // null: devices consume no energy
    PowerSupply* supply;  // null: devices have no batteries
    VirtualUpdates& updates;
    VirtualAggregate& aggregate;
    bool masked;      // values of updates are hidden
    bool on_arrival;  // updates may be computed when they arrive
  };
  // `ports` are those of others; they must outlive the object.
  VirtualCoordinator(const Surroundings& surroundings, server::Conductor::Setup setup,
                     std::unique_ptr<server::RunEngine> engine, server::Ports ports);

  server::Conductor& conductor() { return conductor_; }
  const server::RunEngine& engine() const { return conductor_.engine(); }

  // The client's update has arrived: checks its values.
  void update_arrived(ClientId client, TaskId task);
  // Checks an update of a serverless round.
  Result<void> inspect(ClientId client, TaskId task);
  // A round ends. Returns what it has moved and how long the run has taken.
  server::RunState::Circumstances end_round();
  Time round_closed() const { return round_closed_; }
  // The run has taken this long before this process has continued it.
  void continue_after(std::chrono::duration<double> wall) {
    begun_ = std::chrono::steady_clock::now() -
             std::chrono::duration_cast<std::chrono::steady_clock::duration>(wall);
  }
  std::chrono::duration<double> wall() const { return std::chrono::steady_clock::now() - begun_; }
  // Reports that the round waits for clients, if that is due until this time.
  void report_waiting(Time until);

 private:
  std::optional<server::EnergyFigures> energy_of_round();
  // Nothing is durable in a simulation.
  void record(const server::RunEngine::Input&) override {}
  void enter(server::Decision decision) override {
    conductor_.carry_out(decision, surroundings_.world.now());
  }
  void report(const Event& event) override { surroundings_.world.report(event); }
  void settled(bool stepped) override;
  void finished(const std::string&) override { surroundings_.world.finish(); }
  void failed(const Error& error) override { surroundings_.world.fail(error); }
  void arm_timer();

  Surroundings surroundings_;
  server::Conductor conductor_;
  std::optional<Time> timer_;
  WaitingReport waiting_report_;
  Time round_closed_{};  // when the last round closed
  std::chrono::steady_clock::time_point begun_ = std::chrono::steady_clock::now();
};

}  // namespace fedge::sim
