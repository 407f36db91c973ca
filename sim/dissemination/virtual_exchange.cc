#include "sim/dissemination/virtual_exchange.h"

#include <algorithm>
#include <string>
#include <utility>

#include "core/crypto/sha256.h"

namespace fedge::sim {
namespace {

// Makes a manifest with a unique id. A simulation transfers no bytes, so chunks are not hashed.
protocol::Manifest named(protocol::Manifest shape, const std::string& name) {
  shape.chunks.resize((shape.payload_size + shape.chunk_size - 1) / shape.chunk_size);
  shape.chunks.front() = sha256(name);
  return shape;
}

std::string name_of(TaskId task) {
  return std::to_string(task.round.value()) + " " + std::to_string(task.track.value());
}

}  // namespace

VirtualExchange::Device& VirtualExchange::device(ClientId client, TaskId task) {
  if (const auto known = devices_.find(client); known != devices_.end() && known->second.task != task)
    end(client);
  return devices_.try_emplace(client, Device{task}).first->second;
}

template <class What>
void VirtualExchange::answer(ClientId client, TaskId task, What what) {
  surroundings_.answer(client, client::RoundStep{surroundings_.run, task, std::move(what)});
}

void VirtualExchange::name(ClientId client, protocol::UpdateOffer& offer) {
  offer.update =
      named(offer.update, "update " + std::to_string(client.value()) + " " + name_of(offer.task()));
  const protocol::ObjectId object = offer.update.id();
  updates_.try_emplace(object, Update{client, offer.update});
  device(client, offer.task())
      .held.insert_or_assign(object, swarm::ChunkSet::full(offer.update.chunk_count()));
}

void VirtualExchange::go_on(ClientId client) {
  if (const auto made = made_.find(client); made != made_.end())
    surroundings_.swarm.unshare(client, made->second->id());
}

// The model stays on the device's disk until its updates are aggregated.
void VirtualExchange::hold_model(ClientId client, const protocol::TrainRequest& request) {
  answer(client, request.task(), client::RoundStep::ModelHere{});
}

void VirtualExchange::place(ClientId client, TaskId task, const protocol::Manifest& update) {
  const protocol::ObjectId object = update.id();
  device(client, task).held.try_emplace(object, swarm::ChunkSet(update.chunk_count()));
  answer(client, task, client::RoundStep::Placed{object, {}});
}

void VirtualExchange::open(ClientId client, const protocol::ObjectId& object, const protocol::ObjectId& as) {
  if (const auto made = made_.find(client); made != made_.end() && made->second->id() == object) {
    const swarm::ChunkSet whole = swarm::ChunkSet::full(made->second->chunk_count());
    surroundings_.swarm.share(client, *made->second, whole, as);
    return;
  }
  const auto found = devices_.find(client);
  const auto update = updates_.find(object);
  if (found == devices_.end() || update == updates_.end()) return;
  Device& self = found->second;
  const auto [opened, fresh] = self.opened.try_emplace(object, as);
  if (!fresh && opened->second != as) {
    surroundings_.swarm.unshare(client, object);
    opened->second = as;
  }
  const swarm::ChunkSet& held = self.held.at(object);
  const bool whole = held.complete();
  if (!surroundings_.swarm.share(client, update->second.manifest, held, as) && whole)
    answer(client, self.task, client::RoundStep::Arrived{object, {}});
}

void VirtualExchange::close(ClientId client, const protocol::ObjectId& object) {
  const auto found = devices_.find(client);
  if (found != devices_.end() && found->second.opened.erase(object) > 0)
    surroundings_.swarm.unshare(client, object);
  else
    surroundings_.swarm.forget(client, object);
}

void VirtualExchange::kept(ClientId client, const swarm::Torrent& object) {
  const auto found = devices_.find(client);
  if (found == devices_.end()) return;
  if (const auto held = found->second.held.find(object.id);
      held != found->second.held.end() && !held->second.complete())
    held->second = object.held;
}

void VirtualExchange::completed(ClientId peer, const protocol::ObjectId& object) {
  if (peer == swarm::kCoordinator) {
    if (fetching_ != object) return;
    surroundings_.network.at(surroundings_.network.now(), [this, object] {
      if (fetching_ == object) surroundings_.on_fetched(object);
    });
    return;
  }
  const auto found = devices_.find(peer);
  if (found == devices_.end()) return;
  const auto held = found->second.held.find(object);
  if (held == found->second.held.end()) return;
  held->second = swarm::ChunkSet::full(held->second.size());
  answer(peer, found->second.task, client::RoundStep::Arrived{object, {}});
}

void VirtualExchange::examine(ClientId client, TaskId task, const protocol::ObjectId& object) {
  const auto found = updates_.find(object);
  if (found == updates_.end()) return;
  Update& update = found->second;
  if (!update.examined) update.examined = surroundings_.inspect(update.owner, task);
  answer(client, task, client::RoundStep::Examined{object, *update.examined});
}

// The client aggregates in no time.
void VirtualExchange::make(ClientId client, const protocol::TrainRequest& request) {
  const auto model =
      std::make_shared<const protocol::Manifest>(named(request.model, "model " + name_of(request.task())));
  made_[client] = model;
  surroundings_.swarm.share(client, *model, swarm::ChunkSet::full(model->chunk_count()), request.model.id());
  answer(client, request.task(), client::RoundStep::Made{*model});
}

void VirtualExchange::end(ClientId client) {
  const auto found = devices_.extract(client);
  if (found.empty()) return;
  for (const auto& [object, as] : found.mapped().opened) surroundings_.swarm.unshare(client, object);
  for (const auto& [object, held] : found.mapped().held) {
    const auto update = updates_.find(object);
    // Its own update of which the coordinator has not heard in time.
    if (update != updates_.end() && update->second.owner == client && !watched_.contains(object))
      updates_.erase(update);
  }
}

bool VirtualExchange::has(ClientId client, const protocol::ObjectId& model) const {
  const auto made = made_.find(client);
  return made != made_.end() && made->second->id() == adopted_.first && model == adopted_.second;
}

bool VirtualExchange::watch(const protocol::Manifest& object) {
  surroundings_.swarm.watch(object);
  watched_.insert(object.id());
  return true;
}

void VirtualExchange::admit(ClientId client, const protocol::ObjectId& object) {
  surroundings_.swarm.enter(client);
  surroundings_.swarm.admit(client, object);
}

void VirtualExchange::let_go(const protocol::ObjectId& object) {
  updates_.erase(object);
  watched_.erase(object);
  if (fetching_ == object) fetching_.reset();
  surroundings_.swarm.drop(object);
}

void VirtualExchange::fetch(const protocol::Manifest& model) {
  fetching_ = model.id();
  surroundings_.swarm.fetch(model);
}

void VirtualExchange::abandon(const protocol::ObjectId& model) {
  fetching_.reset();
  surroundings_.swarm.drop(model);
}

swarm::RoundWarmup::Seeds VirtualExchange::warmup_seeds(TaskId task) {
  return {surroundings_.rng.fork("overlay", task.round.value(), task.track.value()).next_u64(),
          surroundings_.rng.fork("secret", task.round.value(), task.track.value()).next_u64()};
}

}  // namespace fedge::sim
