// VirtualTraining: the tasks that virtual devices train, and what a device knows from its training. A device
// takes its time for a task. TrainingPool computes the update when it has arrived at the coordinator, so that
// few updates are in memory at a time; or when the device has finished, if the offer depends on it. Hostile
// devices then replace it. One thread. Memory: for each client one reference to its task's model.
#pragma once

#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "client/conductor/task_conductor.h"
#include "client/engine/boxed.h"
#include "learn/task.h"
#include "server/engine/run_engine.h"
#include "sim/attacks/adversary.h"
#include "sim/devices.h"
#include "sim/dissemination/virtual_exchange.h"
#include "sim/secure/virtual_secrets.h"
#include "sim/split/virtual_split.h"
#include "sim/training/training_pool.h"
#include "sim/world.h"

namespace fedge::sim {

class VirtualTraining {
 public:
  struct Surroundings {
    World& world;
    const Devices& devices;
    const learn::Task& task;
    TrainingPool& pool;
    RunLog& log;
    Adversary& adversary;
    VirtualSecrets* secrets;    // null: updates are not masked
    VirtualExchange* exchange;  // null: the coordinator receives the updates
    VirtualSplit* split;        // null: devices train the whole model
    EnergyMeter* energy;        // null: devices consume no energy
    bool reports_energy;        // in their offers
    // Updates may be computed when they arrive at the coordinator; false: when the device has trained.
    bool on_arrival;
    // Gives an input to the client's conductor.
    std::function<void(ClientId, client::TaskConductor::Input)> step;
    // The task's update is on the device's disk.
    std::function<void(ClientId, TaskId)> on_kept;
  };
  VirtualTraining(Surroundings surroundings, std::size_t clients)
      : surroundings_(std::move(surroundings)), devices_(clients) {}

  // The coordinator assigns this task. Of other tasks the device keeps only `in_hand`, if it has one, and
  // those whose requests are still on their way: it may begin one of them before it hears of the next.
  void assign(const server::RunEngine::Assign& work, const std::optional<TaskId>& in_hand,
              const SharedState& global);
  // The request has reached the device.
  void arrived(ClientId client, TaskId task);
  // Its connection is lost, and with it all requests on their way.
  void lost(ClientId client);
  // The device starts to train.
  void start(ClientId client, const client::ClientEngine::Train& start,
             const protocol::TrainRequest& request);
  // The device trains for a task that it expects. That only takes its time: the update is computed once the
  // task is assigned, from that task's model and what the client keeps, and is the same.
  void start_ahead(ClientId client, const client::ClientEngine::TrainAhead& ahead);
  void abandon_ahead(ClientId client) {
    at(client).ahead = {};
    stop(client, Activity::kTrainingAhead);
  }
  // The masks for the client's update, which is then complete.
  void mask(ClientId client, TaskId task, privacy::Masking masking);
  void abandon(ClientId client, TaskId task);
  // The device lost power.
  void restarted(ClientId client) {
    at(client).utility.reset();
    abandon_ahead(client);
    stop(client, Activity::kTraining);
    if (surroundings_.split != nullptr) surroundings_.split->drop(client);
  }

  // Adds the states with a model that tasks may still need, or gives the devices' tasks theirs.
  void add_live(LiveStates& states) const;
  void go_on(const LiveStates& states);

  // Returns the share of the client's data in its last task.
  double data_share(ClientId client) const { return devices_[client.value()].data_share; }
  // Returns the utility of the client's last training; not of updates that are computed on arrival.
  std::optional<double> utility(ClientId client) const { return devices_[client.value()].utility; }

 private:
  using Trained = client::ClientEngine::Trained;
  struct OnDevice {
    Time ends{};         // of the last training started
    bool early = false;  // its current task was trained before it was assigned
    Time ahead{};        // when the training for an expected task ends, if there is one
    double data_share = 1;
    std::optional<double> utility;
    client::Boxed<Trained> unmasked;  // an update waiting for its masks
    // The models of its current task and of the tasks on their way to it.
    struct Held {
      TaskId task;
      SharedState global;
      bool arrived = false;  // the task's request
    };
    std::vector<Held> models;
  };
  static OnDevice::Held* find(OnDevice& device, TaskId task);
  OnDevice& at(ClientId client) { return devices_[client.value()]; }
  // The device as fast as it trains for this task; meters the energy until the training ends, or until
  // stop().
  struct Paced {
    Device device;
    double watts;
  };
  Paced paced(ClientId client, const protocol::TrainRequest& request, const Coverage& part) const;
  void meter(ClientId client, Activity activity, double watts, Time until);
  void stop(ClientId client, Activity activity);
  void training_ended(ClientId client);
  std::optional<double> reported_energy(ClientId client);
  void finished(ClientId client, RunId run, TaskId task);
  // Begins the exchanges of split training, after which the task is finished.
  void split(ClientId client, const client::ClientEngine::Train& start, double data_share);
  // When the coordinator needs the result of a task that ends at this time.
  Time needed(ClientId client, const TaskId& task, const Coverage& coverage, Time finish) const;
  void kept(ClientId client, const Trained& trained);

  Surroundings surroundings_;
  std::vector<OnDevice> devices_;
};

}  // namespace fedge::sim
