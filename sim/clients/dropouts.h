// Dropouts: which tasks are interrupted, at which moment, and how long their clients then have no network.
// The draws depend only on the run's seed, the task and how often the client got it. One thread.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "learn/task.h"
#include "protocol/messages.h"
#include "server/engine/run_engine.h"
#include "sim/devices.h"
#include "sim/transfers/client_links.h"
#include "sim/world.h"

namespace fedge::sim {

class Dropouts {
 public:
  struct Surroundings {
    World& world;
    ClientLinks& links;
    const Devices& devices;
    const learn::Task& task;
    double probability;  // of a task
    Duration offline;    // after a dropout
    // The client loses its connection now.
    std::function<void(ClientId)> on_dropout;
  };
  Dropouts(Surroundings surroundings, std::size_t clients)
      : surroundings_(std::move(surroundings)), clients_(clients) {}

  // The client gets this task, whose model has this size: it may lose its connection during the task.
  void plan(const server::RunEngine::Assign& work, Bytes model);
  // The coordinator sends this to the client, which may end the task.
  void note(ClientId client, const protocol::Message& message);
  // Returns whether the client has no network after a dropout.
  bool offline(ClientId client) const {
    return surroundings_.world.now() < clients_[client.value()].offline_until;
  }

 private:
  struct Client {
    TaskId task;              // the last assigned one, to which the next two members refer
    std::uint32_t times = 0;  // how often it was assigned
    bool over = false;
    Time offline_until{};
  };
  void drop(ClientId client, TaskId task);

  Surroundings surroundings_;
  std::vector<Client> clients_;
};

}  // namespace fedge::sim
