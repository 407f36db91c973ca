// VirtualUploads: updates on their way to the coordinator; the Updates port of a simulation. What has arrived
// stays at the coordinator when the connection is lost, and a later fetch of the same update continues it.
// One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "server/conductor/ports.h"
#include "sim/devices.h"
#include "sim/transfers/client_links.h"
#include "sim/world.h"

namespace fedge::sim {

class VirtualUploads final : public server::Updates {
 public:
  struct Surroundings {
    World& world;
    ClientLinks& links;
    const Devices& devices;
    std::function<void(ClientId, TaskId)> on_arrived;
  };
  VirtualUploads(Surroundings surroundings, std::size_t clients)
      : surroundings_(std::move(surroundings)), uploads_(clients) {}

  void fetch(const server::RunEngine::Fetch& fetch) override;
  void discard(ClientId client, TaskId task) override;
  // The client is losing its connection.
  void lost(ClientId client);

 private:
  struct Upload {
    protocol::UpdateOffer offer;
    std::size_t arrived = 0;   // chunks, from the first on
    std::uint64_t number = 0;  // of the transfer
    std::optional<Line::Transfer> transfer = {};
  };
  void arrived(ClientId client, std::uint64_t number);
  // Ends the transfer. Bytes after `sent` were not sent. Whole chunks that have passed at `kept` stay.
  void end(ClientId client, Time sent, Time kept);

  Surroundings surroundings_;
  std::vector<std::unique_ptr<Upload>> uploads_;  // for each client
  std::uint64_t transfers_ = 0;
};

}  // namespace fedge::sim
