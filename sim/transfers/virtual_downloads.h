// VirtualDownloads: models on their way to virtual devices, and the chunks on the devices' disks. Chunks come
// from the coordinator over the client's line, or from other clients (VirtualSwarm) and then only the rest
// from the coordinator. A device has at most one download. One thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "client/client_engine.h"
#include "client/engine/boxed.h"
#include "learn/task.h"
#include "sim/devices.h"
#include "sim/dissemination/virtual_exchange.h"
#include "sim/dissemination/virtual_swarm.h"
#include "sim/transfers/client_links.h"
#include "sim/transfers/device_files.h"
#include "sim/world.h"

namespace fedge::sim {

class VirtualDownloads {
 public:
  struct Surroundings {
    World& world;
    ClientLinks& links;
    const Devices& devices;
    const learn::Task& task;
    VirtualSwarm* swarm;        // null: clients download models from the coordinator
    VirtualExchange* exchange;  // null unless the run is serverless
    std::function<void(ClientId, RunId, TaskId)> on_fetched;
  };
  VirtualDownloads(Surroundings surroundings, std::size_t clients)
      : surroundings_(std::move(surroundings)), devices_(clients) {}

  // Fetches what the client's disk lacks of the models of a task that trains this part.
  void fetch(ClientId client, const client::ClientEngine::FetchModel& fetch, const Coverage& coverage);
  // The client needs the models no longer.
  void abandon(ClientId client);
  // The client is losing its connection. Whole chunks that have arrived stay on the disk.
  void lost(ClientId client);
  // The coordinator sends no more of the client's download, or only if it is of this task.
  void release(ClientId client);
  void take_back(ClientId client, TaskId task);
  // The client's update is on its disk, so the models are released.
  void update_kept(ClientId client, TaskId task);
  // The client's process has started again.
  void restarted(ClientId client);

  // The client exchanges an object with others: it has all chunks that it wanted, or it has stopped.
  void completed(ClientId client, const protocol::ObjectId& object);
  void stopped(ClientId client, const swarm::Torrent& object);

 private:
  struct Download {
    std::uint64_t number;
    RunId run;
    TaskId task;
    Line::Transfer transfer;
  };
  struct OnDevice {
    client::Boxed<Download> download;
    std::unique_ptr<DeviceFiles> files;                          // null if there are none
    client::Boxed<client::ClientEngine::FetchModel> exchanging;  // a model that is still incomplete
  };
  OnDevice& at(ClientId client) { return devices_[client.value()]; }
  void exchange(ClientId client, const client::ClientEngine::FetchModel& fetch);
  void download(ClientId client, RunId run, TaskId task);
  void arrived(ClientId client, std::uint64_t number);
  // Ends the download. Bytes after `sent` were not sent. Whole chunks that have passed at `kept` stay.
  void end(ClientId client, Time sent, Time kept);

  Surroundings surroundings_;
  std::vector<OnDevice> devices_;
  DeviceFiles::Manifest last_model_;  // of the last client that fetched
  DeviceFiles::Manifest last_control_;
  std::uint64_t downloads_ = 0;
};

}  // namespace fedge::sim
