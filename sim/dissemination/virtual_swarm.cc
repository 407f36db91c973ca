#include "sim/dissemination/virtual_swarm.h"

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

namespace fedge::sim {
namespace {

using swarm::ChunkSet;
using swarm::kCoordinator;
using swarm::Peer;

// Trips for TCP, TLS 1.3, Hello and Welcome, until both sides may send.
constexpr int kTripsToLink = 6;
// As in the daemons, a link that is not needed any more stays open for a while: the next model may need it.
constexpr Duration kKeepLink = std::chrono::minutes(1);

}  // namespace

VirtualSwarm::VirtualSwarm(Surroundings surroundings, const Rng& rng)
    : surroundings_(std::move(surroundings)),
      rng_(rng),
      links_(surroundings_.network, {.on_completed = [this](ClientId peer, const protocol::ObjectId& object) {
               surroundings_.on_completed(peer, object);
             }}) {
  links_.add(kCoordinator, {}, rng_.fork("coordinator"));
}

void VirtualSwarm::give(ClientId client, TaskId task, const protocol::Manifest& model) {
  if (const auto before = tasks_.find(client); before != tasks_.end()) done(client, before->second.first);
  const protocol::ObjectId object = model.id();
  tasks_[client] = {task, object};
  const ChunkSet all = ChunkSet::full(model.chunk_count());
  if (!tracker_.has(object))
    links_.step(kCoordinator,
                Peer::Open{model, all, all, swarm::Seeding{.copies = surroundings_.spec.copies}});
  enter(client);
  links_.step(kCoordinator, Peer::Admit{object, client});
  protocol::SwarmMember self{client, {}, {}};
  if (surroundings_.listens(client)) self.address = "listens";
  tell(tracker_.join(object, self, surroundings_.spec.neighbours, rng_.fork("join", ++joins_)));
}

void VirtualSwarm::enter(ClientId client) {
  const auto [known, fresh] = clients_.try_emplace(client);
  if (!fresh) return;
  known->second.life = ++lives_;
  links_.add(client, {}, rng_.fork("peer", client.value(), lives_));
  links_.link(kCoordinator, client);
}

void VirtualSwarm::done(ClientId client, TaskId task) {
  const auto known = tasks_.find(client);
  if (known == tasks_.end() || known->second.first != task) return;
  const protocol::ObjectId object = known->second.second;
  tasks_.erase(known);
  if (tracker_.done(object, client)) end(object);
}

// Ends the exchange: no client needs the object any more.
void VirtualSwarm::end(const protocol::ObjectId& object) {
  links_.step(kCoordinator, Peer::Close{object});
  for (auto& [id, client] : clients_) {
    if (client.opened == object) close(id);
    client.named.erase(object);
    unlink_unnamed(id);
  }
}

// Ends the client's links with clients that it exchanges nothing with, after a while.
void VirtualSwarm::unlink_unnamed(ClientId client) {
  const auto unneeded = [this, client](ClientId other) {
    return other != kCoordinator && !names(client, other) && !names(other, client);
  };
  if (std::ranges::none_of(links_.links(client), unneeded)) return;
  auto& network = surroundings_.network;
  network.at(network.now() + kKeepLink, [this, client, unneeded, life = clients_.at(client).life] {
    const auto known = clients_.find(client);
    if (known == clients_.end() || known->second.life != life) return;
    const std::set<ClientId> others = links_.links(client);
    for (const ClientId other : others)
      if (unneeded(other)) links_.unlink(client, other);
  });
}

void VirtualSwarm::tell(const std::vector<swarm::Tracker::Tell>& tells) {
  for (const auto& [to, message] : tells) {
    const auto known = clients_.find(to);
    if (known == clients_.end()) continue;
    surroundings_.network.at(
        surroundings_.network.now() + surroundings_.network.latency(kCoordinator, to),
        [this, to = to, life = known->second.life, message = message] {
          const auto alive = clients_.find(to);
          if (alive != clients_.end() && alive->second.life == life && tracker_.has(message.object))
            told(to, message);
        });
  }
}

void VirtualSwarm::told(ClientId client, const protocol::SwarmMembers& members) {
  auto& named = clients_.at(client).named[members.object];
  for (const ClientId other : members.leave) {
    named.erase(other);
    links_.step(client, Peer::Dismiss{members.object, other});
    for (const auto& [object, model] : clients_.at(client).shared)
      if (model == members.object) links_.step(client, Peer::Dismiss{object, other});
  }
  for (const protocol::SwarmMember& member : members.join) {
    named.insert(member.client);
    admit(client, members.object, member.client);
    dial(client, member.client);
  }
}

void VirtualSwarm::admit(ClientId client, const protocol::ObjectId& model, ClientId other) {
  links_.step(client, Peer::Admit{model, other});
  for (const auto& [object, like] : clients_.at(client).shared)
    if (like == model) links_.step(client, Peer::Admit{object, other});
}

bool VirtualSwarm::names(ClientId a, ClientId b) const {
  const auto known = clients_.find(a);
  if (known == clients_.end()) return false;
  for (const auto& [object, members] : known->second.named)
    if (members.contains(b)) return true;
  return false;
}

// The client that is notified last opens the link: earlier, the other would refuse it.
void VirtualSwarm::dial(ClientId a, ClientId b) {
  if (!names(b, a) || (!surroundings_.listens(a) && !surroundings_.listens(b))) return;
  auto& network = surroundings_.network;
  network.at(network.now() + kTripsToLink * network.latency(a, b),
             [this, a, b, lives = std::pair(clients_.at(a).life, clients_.at(b).life)] {
               const auto one = clients_.find(a);
               const auto other = clients_.find(b);
               if (one == clients_.end() || other == clients_.end()) return;
               if (std::pair(one->second.life, other->second.life) != lives) return;
               if (names(a, b) && names(b, a)) links_.link(a, b);
             });
}

void VirtualSwarm::open(ClientId client, const protocol::Manifest& model, const ChunkSet& held,
                        const ChunkSet& wanted) {
  const auto known = clients_.find(client);
  if (known == clients_.end()) return;  // disconnected
  const protocol::ObjectId object = model.id();
  const swarm::Torrent* torrent = links_.peer(client).torrent(object);
  // A complete model stays open, as in swarm::Exchange.
  const bool open_still =
      known->second.opened == object && torrent != nullptr && torrent->complete_for(wanted);
  if (!open_still) {
    close(client);
    known->second.opened = object;
    links_.step(client, Peer::Open{model, held, wanted, std::nullopt});
  }
  links_.step(client, Peer::Admit{object, kCoordinator});
  for (const ClientId other : known->second.named[object]) links_.step(client, Peer::Admit{object, other});
  if (open_still) surroundings_.on_completed(client, object);
}

void VirtualSwarm::close(ClientId client) {
  const auto known = clients_.find(client);
  if (known == clients_.end()) return;
  const auto opened = std::exchange(known->second.opened, std::nullopt);
  if (!opened) return;
  report_ended(client, *opened);
  links_.step(client, Peer::Close{*opened});
}

void VirtualSwarm::report_ended(ClientId client, const protocol::ObjectId& object) {
  if (const swarm::Torrent* torrent = links_.peer(client).torrent(object))
    surroundings_.on_ended(client, *torrent);
}

bool VirtualSwarm::share(ClientId client, const protocol::Manifest& object, const ChunkSet& held,
                         const protocol::ObjectId& model) {
  const auto known = clients_.find(client);
  if (known == clients_.end()) return false;
  const protocol::ObjectId id = object.id();
  if (!known->second.shared.emplace(id, model).second) return false;
  const ChunkSet all = ChunkSet::full(object.chunk_count());
  // If `model` is a warm-up's swarm, the warm-up controls the exchange.
  links_.step(client, Peer::Open{object, held, all, {}, model});
  links_.step(client, Peer::Admit{id, kCoordinator});
  for (const ClientId other : known->second.named[model]) links_.step(client, Peer::Admit{id, other});
  return true;
}

void VirtualSwarm::unshare(ClientId client, const protocol::ObjectId& object) {
  const auto known = clients_.find(client);
  if (known != clients_.end() && known->second.shared.erase(object) > 0)
    links_.step(client, Peer::Close{object});
}

void VirtualSwarm::begin_warmup(ClientId client, const protocol::WarmupPlan& plan,
                                const protocol::ObjectId& own) {
  if (!clients_.contains(client)) return;
  links_.step(client, Peer::BeginWarmup{plan, own});
  protocol::SwarmMembers members{plan.swarm, {}, {}};
  for (const auto& neighbour : plan.neighbours) members.join.push_back({neighbour.client, {}, {}});
  told(client, members);
}

void VirtualSwarm::carry_out(ClientId client, const protocol::ObjectId& swarm,
                             const protocol::WarmupSlot& slot) {
  if (clients_.contains(client)) links_.step(client, Peer::Slot{swarm, slot});
}

void VirtualSwarm::end_warmup(ClientId client, const protocol::ObjectId& swarm,
                              const protocol::ObjectId& model) {
  const auto known = clients_.find(client);
  if (known == clients_.end()) return;
  links_.step(client, Peer::EndWarmup{swarm});
  for (auto& [object, like] : known->second.shared) {
    if (like != swarm) continue;
    like = model;
    for (const ClientId other : known->second.named[model]) links_.step(client, Peer::Admit{object, other});
  }
}

void VirtualSwarm::forget(ClientId client, const protocol::ObjectId& swarm) {
  const auto known = clients_.find(client);
  if (known == clients_.end()) return;
  known->second.named.erase(swarm);
  links_.step(client, Peer::EndWarmup{swarm});
  unlink_unnamed(client);
}

const ChunkSet* VirtualSwarm::chunks_of(ClientId client, const protocol::ObjectId& object) const {
  const swarm::Torrent* torrent = links_.peer(kCoordinator).torrent(object);
  if (torrent == nullptr) return nullptr;
  const auto share = torrent->shares.find(client);
  return share == torrent->shares.end() || !share->second.heard ? nullptr : &share->second.has;
}

void VirtualSwarm::watch(const protocol::Manifest& object) {
  const ChunkSet none(object.chunk_count());
  links_.step(kCoordinator, Peer::Open{object, none, none, std::nullopt});
}

void VirtualSwarm::fetch(const protocol::Manifest& object) {
  const ChunkSet none(object.chunk_count());
  links_.step(kCoordinator, Peer::Open{object, none, ChunkSet::full(object.chunk_count()), std::nullopt});
}

void VirtualSwarm::admit(ClientId client, const protocol::ObjectId& object) {
  links_.step(kCoordinator, Peer::Admit{object, client});
}

bool VirtualSwarm::obtainable(const protocol::ObjectId& object) const {
  const swarm::Torrent* torrent = links_.peer(kCoordinator).torrent(object);
  return torrent != nullptr && torrent->obtainable();
}

void VirtualSwarm::drop(const protocol::ObjectId& object) {
  links_.step(kCoordinator, Peer::Close{object});
  for (auto& [id, client] : clients_)
    if (client.shared.erase(object) > 0) links_.step(id, Peer::Close{object});
}

void VirtualSwarm::gone(ClientId client) {
  const auto lost = clients_.extract(client);
  if (lost.empty()) return;
  if (const auto& opened = lost.mapped().opened) report_ended(client, *opened);
  for (const auto& [object, model] : lost.mapped().shared) report_ended(client, object);
  tasks_.erase(client);
  links_.remove(client);
  const swarm::Tracker::Left left = tracker_.leave(client);
  tell(left.tells);
  for (const protocol::ObjectId& object : left.over) end(object);
}

}  // namespace fedge::sim
