#include "swarm/tracker.h"

#include <span>
#include <utility>

namespace fedge::swarm {

std::vector<Tracker::Tell> Tracker::join(const protocol::ObjectId& object,
                                         const protocol::SwarmMember& newcomer, std::size_t neighbours,
                                         Rng rng) {
  std::vector<Tell> tells = leave(object, newcomer.client);
  auto& swarm = swarms_[object];
  std::vector<ClientId> possible;
  for (const auto& [client, member] : swarm)
    if (!newcomer.address.empty() || !member.self.address.empty()) possible.push_back(client);
  rng.shuffle(std::span(possible));
  if (possible.size() > neighbours) possible.resize(neighbours);
  Member& entered = swarm[newcomer.client];
  entered.self = newcomer;
  Tell own{newcomer.client, {object, {}, {}}};
  for (const ClientId client : possible) {
    Member& member = swarm.at(client);
    entered.neighbours.insert(client);
    member.neighbours.insert(newcomer.client);
    tells.push_back({client, {object, {newcomer}, {}}});
    own.message.join.push_back(member.self);
  }
  if (!own.message.join.empty()) tells.push_back(std::move(own));
  return tells;
}

std::vector<Tracker::Tell> Tracker::leave(const protocol::ObjectId& object, ClientId member) {
  std::vector<Tell> tells;
  const auto swarm = swarms_.find(object);
  if (swarm == swarms_.end()) return tells;
  const auto left = swarm->second.extract(member);
  if (left.empty()) return tells;
  for (const ClientId client : left.mapped().neighbours) {
    swarm->second.at(client).neighbours.erase(member);
    tells.push_back({client, {object, {}, {member}}});
  }
  return tells;
}

std::vector<Tracker::Tell> Tracker::leave(ClientId member) {
  std::vector<Tell> tells;
  for (const auto& [object, swarm] : swarms_)
    for (Tell& tell : leave(object, member)) tells.push_back(std::move(tell));
  return tells;
}

std::size_t Tracker::members(const protocol::ObjectId& object) const {
  const auto swarm = swarms_.find(object);
  return swarm == swarms_.end() ? 0 : swarm->second.size();
}

}  // namespace fedge::swarm
