#include "swarm/tracker.h"

#include <span>
#include <utility>

namespace fedge::swarm {

std::vector<Tracker::Tell> Tracker::join(const protocol::ObjectId& object,
                                         const protocol::SwarmMember& newcomer, std::size_t neighbours,
                                         Rng rng) {
  std::vector<Tell> tells;
  Swarm& swarm = swarms_[object];
  part(swarm, object, newcomer.client, tells);
  std::vector<ClientId> possible;
  for (const auto& [client, member] : swarm.members)
    if (client != newcomer.client && (!newcomer.address.empty() || !member.self.address.empty()))
      possible.push_back(client);
  rng.shuffle(std::span(possible));
  if (possible.size() > neighbours) possible.resize(neighbours);
  Member& entered = swarm.members[newcomer.client];
  entered.self = newcomer;
  ++entered.tasks;
  ++swarm.tasks;
  Tell own{newcomer.client, {object, {}, {}}};
  for (const ClientId client : possible) {
    Member& member = swarm.members.at(client);
    entered.neighbours.insert(client);
    member.neighbours.insert(newcomer.client);
    tells.push_back({client, {object, {newcomer}, {}}});
    own.message.join.push_back(member.self);
  }
  if (!own.message.join.empty()) tells.push_back(std::move(own));
  return tells;
}

// Removes the member from its neighbours.
void Tracker::part(Swarm& swarm, const protocol::ObjectId& object, ClientId member,
                   std::vector<Tell>& tells) {
  const auto known = swarm.members.find(member);
  if (known == swarm.members.end()) return;
  for (const ClientId client : std::exchange(known->second.neighbours, {})) {
    swarm.members.at(client).neighbours.erase(member);
    tells.push_back({client, {object, {}, {member}}});
  }
}

bool Tracker::done(const protocol::ObjectId& object, ClientId member) {
  const auto swarm = swarms_.find(object);
  if (swarm == swarms_.end()) return false;
  const auto known = swarm->second.members.find(member);
  if (known == swarm->second.members.end() || known->second.tasks == 0) return false;
  --known->second.tasks;
  if (--swarm->second.tasks > 0) return false;
  swarms_.erase(swarm);
  return true;
}

Tracker::Left Tracker::leave(ClientId member) {
  Left left;
  for (auto next = swarms_.begin(); next != swarms_.end();) {
    const auto entry = next++;
    Swarm& swarm = entry->second;
    const auto known = swarm.members.find(member);
    if (known == swarm.members.end()) continue;
    part(swarm, entry->first, member, left.tells);
    swarm.tasks -= known->second.tasks;
    swarm.members.erase(known);
    if (swarm.tasks > 0) continue;
    left.over.push_back(entry->first);
    swarms_.erase(entry);
  }
  return left;
}

}  // namespace fedge::swarm
