// VirtualRecords: the node records of virtual clients, from their publication to the coordinator. They travel
// over the clients' connections or through the directory. One thread.
#pragma once

#include <functional>
#include <optional>

#include "client/client_engine.h"
#include "learn/task.h"
#include "run/run_config.h"
#include "server/directory/node_records.h"
#include "sim/directory/run_directory.h"
#include "sim/energy/power_supply.h"
#include "sim/transfers/client_links.h"

namespace fedge::sim {

class VirtualRecords {
 public:
  struct Surroundings {
    World& world;
    ClientLinks& links;
    const Devices& devices;
    const learn::Task& task;
    const run::RunConfig& config;
    PowerSupply* supply;      // null: devices have no batteries
    RunDirectory* directory;  // null: records travel over the clients' connections
  };
  // Calls `on_record` with each record that reaches the coordinator. Borrowed arguments must outlive the
  // object.
  VirtualRecords(const Surroundings& surroundings, std::size_t clients,
                 server::NodeRecords::OnRecord on_record);

  // The client is connected: the coordinator follows its records in the directory.
  void linked(ClientId client);
  // The client publishes its record; `utility` is that of its last training.
  void publish(ClientId client, const client::ClientEngine::Publish& publish, std::optional<double> utility);

 private:
  void arrived(ClientId client, const protocol::PublishRecord& record);

  Surroundings surroundings_;
  server::NodeRecords nodes_;
};

}  // namespace fedge::sim
