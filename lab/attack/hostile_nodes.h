// HostileNodes: the lying nodes of a network: their answers and their unsolicited messages. One thread; must
// outlive the network's run.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "core/rng.h"
#include "lab/attack/attack.h"
#include "sim/overlays/network.h"

namespace fedge::lab {

class HostileNodes {
 public:
  // All addresses from `first` on are hostile.
  HostileNodes(const AttackOptions& options, sim::OverlayNetwork& network, dht::Address first);

  bool contains(dht::Address address) const { return address >= first_; }
  const std::vector<dht::Contact>& all() const { return all_; }

  // Starts the attack on `key`: from now on the nodes answer as it requires.
  void turn(dht::Id key);
  // Each announces itself to the victim, with an id near the victim or where the victim's table has room.
  void flood(const dht::Contact& victim);
  // Each asks some honest node to store a large worthless value.
  void leave_rubbish(std::size_t bytes);
  // Each requests the values of a holder, with the victim as the sender. Returns the bytes sent.
  std::size_t reflect(const dht::Contact& victim, const std::vector<dht::Contact>& holders);

 private:
  bool answer(const dht::Message& request, dht::Message& reply, const sim::OverlayNetwork::Honest& honest);
  bool lie_about_values(const dht::Message& request, dht::Message& reply);
  void name_accomplices(const dht::Message& request, dht::Message& reply);
  dht::Id claimed(const dht::Contact& self, dht::Id wanted, dht::Id distance) const;

  AttackOptions options_;
  sim::OverlayNetwork& network_;
  dht::Address first_;
  Rng rng_;
  std::vector<dht::Contact> all_;
  dht::Id key_ = 0;
  std::map<std::pair<dht::Id, std::uint64_t>, dht::Value>
      first_seen_;  // oldest value offered for each key and slot
};

}  // namespace fedge::lab
