// HostileNodes: the lying nodes of a network: their answers and their unsolicited messages. One thread; must
// outlive the network's run.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "core/rng.h"
#include "sim/hostile/attack.h"
#include "sim/overlays/network/network.h"

namespace fedge::sim {

class HostileNodes {
 public:
  // All addresses from `first` on are hostile.
  HostileNodes(const AttackOptions& options, OverlayNetwork& network, Address first);

  bool contains(Address address) const { return address >= first_; }
  const std::vector<Contact>& all() const { return all_; }

  // Starts the attack on `key`: from now on the nodes answer as it requires.
  void turn(Id key);
  // Each announces itself to the victim, with an id near the victim or where the victim's table has room.
  void flood(const Contact& victim);
  // Each asks some honest node to store a large worthless value.
  void leave_rubbish(std::size_t bytes);
  // Each requests the values of a holder, with the victim as the sender. Returns the bytes sent.
  std::size_t reflect(const Contact& victim, const std::vector<Contact>& holders);

 private:
  bool answer(const Message& request, Message& reply, const OverlayNetwork::Honest& honest);
  bool lie_about_values(const Message& request, Message& reply);
  void name_accomplices(const Message& request, Message& reply);
  Id claimed(const Contact& self, Id wanted, Id distance) const;

  AttackOptions options_;
  OverlayNetwork& network_;
  Address first_;
  Rng rng_;
  std::vector<Contact> all_;
  Id key_ = 0;
  std::map<std::pair<Id, std::uint64_t>, Value> first_seen_;  // oldest value offered for each key and slot
};

}  // namespace fedge::sim
