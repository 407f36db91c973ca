// HostileNodes: those nodes of a network that lie: what they answer, and what they send unasked. One thread;
// must outlive the network's run.
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
  // The addresses are those from `first` on.
  HostileNodes(const AttackOptions& options, OverlayNetwork& network, Address first);

  bool contains(Address address) const { return address >= first_; }
  const std::vector<Contact>& all() const { return all_; }

  // From now on they answer as the attack wants it; `key` is the one that they are after.
  void turn(Id key);
  // Each tells the victim that it is there, near the victim or wherever its table has room.
  void flood(const Contact& victim);
  // Each wants some honest node to keep something large and worthless.
  void leave_rubbish(std::size_t bytes);
  // Each asks a holder in the victim's name for what it holds. Bytes sent.
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
  std::map<std::pair<Id, std::uint64_t>, Value> first_seen_;  // the oldest of each that was offered
};

}  // namespace fedge::sim
