// SwarmNetwork: the network between virtual clients that exchange chunks. A chunk between two devices uses
// the uplink of the first and the downlink of the second, first come, first served, shared with their other
// transfers. Messages use no bandwidth. One thread.
#pragma once

#include <utility>

#include "sim/devices.h"
#include "sim/transfers/client_links.h"
#include "sim/world.h"
#include "swarm/virtual/virtual_links.h"

namespace fedge::sim {

class SwarmNetwork final : public swarm::VirtualLinks::Network {
 public:
  using Happening = swarm::VirtualLinks::Happening;
  // The arguments must outlive the object.
  SwarmNetwork(World& world, const Devices& devices, ClientLinks& links)
      : world_(world), devices_(devices), links_(links) {}

  Time now() const override { return world_.now(); }
  void at(Time when, Happening what) override { world_.at(when, std::move(what)); }
  Duration latency(ClientId from, ClientId to) const override { return to_centre(from) + to_centre(to); }
  void chunk(ClientId from, ClientId to, std::size_t bytes, Happening sent, Happening arrived) override;

 private:
  Duration to_centre(ClientId client) const;

  World& world_;
  const Devices& devices_;
  ClientLinks& links_;
};

}  // namespace fedge::sim
