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

void VirtualExchange::name(ClientId client, protocol::UpdateOffer& offer) {
  offer.update =
      named(offer.update, "update " + std::to_string(client.value()) + " " + name_of(offer.task()));
  const protocol::ObjectId object = offer.update.id();
  updates_.try_emplace(object, Update{client, std::nullopt});
  if (Member* self = member(client, offer.task())) self->own = object;
}

bool VirtualExchange::hear(ClientId client, const protocol::Message& message) {
  if (const auto* request = std::get_if<protocol::TrainRequest>(&message)) {
    begin(client, *request);
    return false;
  }
  if (const auto* update = std::get_if<protocol::ServerlessUpdate>(&message)) {
    take(client, *update);
  } else if (const auto* order = std::get_if<protocol::AggregateUpdates>(&message)) {
    Member* self = member(client, order->task());
    if (self == nullptr) return true;
    self->order = *order;
    aggregate_if_ready(client, *self);
  } else if (const auto* plan = std::get_if<protocol::WarmupPlan>(&message)) {
    Member* self = member(client, plan->task());
    if (self == nullptr || !self->own) return true;
    self->warmup = plan->swarm;
    self->warming = true;
    surroundings_.swarm.begin_warmup(client, *plan, *self->own);
  } else if (const auto* slot = std::get_if<protocol::WarmupSlot>(&message)) {
    const Member* self = member(client, slot->task());
    if (self != nullptr && self->warming) surroundings_.swarm.carry_out(client, *self->warmup, *slot);
  } else if (const auto* over = std::get_if<protocol::WarmupOver>(&message)) {
    Member* self = member(client, over->task());
    if (self == nullptr || !std::exchange(self->warming, false)) return true;
    surroundings_.swarm.end_warmup(client, *self->warmup, self->model->id());
  } else {
    return false;
  }
  return true;
}

void VirtualExchange::begin(ClientId client, const protocol::TrainRequest& request) {
  Member& self = members_[client];
  if (!model_ || !(*model_ == request.model))
    model_ = std::make_shared<const protocol::Manifest>(request.model);
  self.warming = false;  // a lost connection ended it
  if (self.model && self.task == request.task()) return;
  leave(client, self);
  surroundings_.swarm.unshare(client);
  self = Member{.task = request.task(), .model = model_};
}

void VirtualExchange::end(ClientId client, TaskId task) {
  const Member* self = member(client, task);
  if (self == nullptr) return;
  leave(client, *self);
  const auto made = made_.find(client);
  surroundings_.swarm.unshare(client, made != made_.end() ? std::optional(made->second) : std::nullopt);
  members_.erase(client);
}

void VirtualExchange::leave(ClientId client, const Member& self) {
  if (self.warmup) surroundings_.swarm.forget(client, *self.warmup);
  if (self.own && !watched_.contains(*self.own)) updates_.erase(*self.own);  // its offer came too late
}

VirtualExchange::Member* VirtualExchange::member(ClientId client, TaskId task) {
  const auto found = members_.find(client);
  return found == members_.end() || found->second.task != task ? nullptr : &found->second;
}

void VirtualExchange::take(ClientId client, const protocol::ServerlessUpdate& message) {
  Member* self = member(client, message.task());
  if (self == nullptr) return;
  const protocol::ObjectId object = message.update.id();
  const bool has = self->own == object || self->held.contains(object);
  const protocol::ObjectId with = self->warming ? *self->warmup : self->model->id();
  const std::size_t chunks = message.update.chunk_count();
  const auto partial = self->partial.find(object);
  const swarm::ChunkSet held = has                              ? swarm::ChunkSet::full(chunks)
                               : partial != self->partial.end() ? partial->second
                                                                : swarm::ChunkSet(chunks);
  // A coordinator that is told of the update again sends its message again.
  if (!surroundings_.swarm.share(client, message.update, held, with) && has) answer(client, *self, object);
}

void VirtualExchange::kept(ClientId client, const swarm::Torrent& object) {
  const auto found = members_.find(client);
  if (found != members_.end() && updates_.contains(object.id) && !found->second.held.contains(object.id))
    found->second.partial.insert_or_assign(object.id, object.held);
}

void VirtualExchange::completed(ClientId peer, const protocol::ObjectId& object) {
  if (peer == swarm::kCoordinator) {
    if (fetching_ != object) return;
    surroundings_.network.at(surroundings_.network.now(), [this, object] {
      if (fetching_ == object) surroundings_.on_fetched(object);
    });
    return;
  }
  const auto found = members_.find(peer);
  if (found == members_.end() || !updates_.contains(object)) return;
  found->second.held.insert(object);
  found->second.partial.erase(object);
  answer(peer, found->second, object);
  aggregate_if_ready(peer, found->second);
}

void VirtualExchange::answer(ClientId client, const Member& self, const protocol::ObjectId& object) {
  const auto found = updates_.find(object);
  if (found == updates_.end()) return;
  Update& update = found->second;
  if (!update.examined) update.examined = surroundings_.inspect(update.owner, self.task);
  protocol::UpdateHeld held{
      .run = surroundings_.run, .round = self.task.round, .track = self.task.track, .object = object};
  if (held.sound = update.examined->has_value(); !held.sound) {
    held.code = update.examined->error().code;
    held.reason = update.examined->error().message;
  }
  surroundings_.send(client, held);
}

// The client aggregates in no time.
void VirtualExchange::aggregate_if_ready(ClientId client, Member& self) {
  if (!self.order) return;
  const bool ready = std::ranges::all_of(self.order->parts,
                                         [&](const auto& part) { return self.held.contains(part.object); });
  if (!ready) return;
  const protocol::Manifest model = named(*self.model, "model " + name_of(self.task));
  made_[client] = model.id();
  self.order.reset();
  surroundings_.swarm.share(client, model, swarm::ChunkSet::full(model.chunk_count()), self.model->id());
  surroundings_.send(client,
                     protocol::AggregateMade{surroundings_.run, self.task.round, self.task.track, model});
}

bool VirtualExchange::has(ClientId client, const protocol::ObjectId& model) const {
  const auto made = made_.find(client);
  return made != made_.end() && made->second == adopted_.first && model == adopted_.second;
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
