// The simulator's place among clients of a serverless run: its VirtualExchange and VirtualSwarm. The client
// halves of both are not used, because the script decides what the clients have and send. Messages take no
// time, clients cannot connect to each other, and chunks for the coordinator wait until the script delivers
// them.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "sim/dissemination/virtual_exchange.h"
#include "sim/dissemination/virtual_swarm.h"
#include "tests/property/sim/shells/client_disks.h"
#include "tests/property/sim/shells/memory_stores.h"
#include "tests/property/sim/shells/scene.h"

namespace fedge::server::shells {

// The lines between clients and coordinator.
class ScriptedNetwork final : public swarm::VirtualLinks::Network {
 public:
  using Happening = swarm::VirtualLinks::Happening;
  explicit ScriptedNetwork(const Time& now) : now_(now) {}

  Time now() const override { return now_; }
  void at(Time when, Happening what) override { waiting_.emplace(when, std::move(what)); }
  Duration latency(ClientId from, ClientId to) const override {
    const bool to_coordinator = from == swarm::kCoordinator || to == swarm::kCoordinator;
    return to_coordinator ? Duration::zero() : Duration(std::chrono::hours(10'000));
  }
  void chunk(ClientId from, ClientId to, std::size_t, Happening sent, Happening arrived) override {
    if (to == swarm::kCoordinator)
      return held_[from].emplace_back(std::move(sent), std::move(arrived)), void();
    sent();
    at(now(), std::move(arrived));
  }

  // Runs everything up to now.
  void run() {
    while (!waiting_.empty() && waiting_.begin()->first <= now_)
      waiting_.extract(waiting_.begin()).mapped()();
  }
  bool holds(ClientId client) const { return held_.contains(client); }
  // Delivers this client's chunks, also those that are requested meanwhile.
  void deliver(ClientId client) {
    for (auto chunks = held_.extract(client); !chunks.empty(); chunks = held_.extract(client)) {
      for (auto& [sent, arrived] : chunks.mapped()) sent(), arrived();
      run();
    }
  }
  // The coordinator does not want chunks of this client any more.
  void drop(ClientId client) {
    if (auto chunks = held_.extract(client); !chunks.empty())
      for (auto& [sent, arrived] : chunks.mapped()) sent();
  }
  void drop_all() {
    while (!held_.empty()) drop(held_.begin()->first);
  }

 private:
  const Time& now_;
  std::multimap<Time, Happening> waiting_;  // of one time: in order
  std::map<ClientId, std::vector<std::pair<Happening, Happening>>> held_;
};

class SimulatedExchange final : public Exchange {
 public:
  using OnFetched = std::function<void(const protocol::ObjectId&, const Result<void>&)>;
  SimulatedExchange(const Scene& scene, const ClientDisks& disks, const Time& now, const bool& room,
                    OnFetched on_fetched)
      : disks_(disks),
        room_(room),
        on_fetched_(std::move(on_fetched)),
        network_(now),
        swarm_(
            {.network = network_,
             .spec = scene.config.dissemination,
             .listens = accepts_links,
             .on_completed = [this](ClientId peer,
                                    const protocol::ObjectId& object) { exchange_.completed(peer, object); },
             .on_ended = [](ClientId, const swarm::Torrent&) {}},
            Rng(scene.config.seed).fork("swarm")),
        exchange_({.swarm = swarm_,
                   .network = network_,
                   .run = scene.config.id,
                   .rng = scene.warmup_draws(),
                   .inspect = [](ClientId, TaskId) { return Result<void>(); },
                   .answer = [](ClientId, const client::RoundStep&) {},
                   .on_fetched = [this](const protocol::ObjectId& model) { on_fetched_(model, {}); }}) {}

  // Runs everything up to now.
  void run() { network_.run(); }
  void give(ClientId client, TaskId task, const protocol::Manifest& model) {
    enter(client);
    swarm_.give(client, task, model);
  }
  void done(ClientId client, TaskId task) { swarm_.done(client, task); }
  void gone(ClientId client) {
    entered_.erase(client);
    swarm_.gone(client);
    network_.drop(client);
  }
  // What the client has of this object has changed. The simulator's clients announce an object as a whole, so
  // a client that has an update in part begins to exchange it again.
  void announce(ClientId client, const protocol::ObjectId& object) {
    if (object != fetching_)
      for (const auto& [id, has] : disks_.of(client))
        if (id != fetching_) swarm_.unshare(client, id);
    share_all(client);
  }
  bool requests(ClientId client) const { return network_.holds(client); }
  // The client answers the coordinator's requests for a model's chunks; with `fault`, each ends with this
  // error. The simulator's lines lose no chunk, so a client that damages one begins on a new line.
  void answer_requests(ClientId client, const std::optional<Error>& fault) {
    if (!fault) return network_.deliver(client);
    if (!network_.holds(client)) return;
    if (fault->code == ErrorCode::kResource) return on_fetched_(*fetching_, *fault);
    gone(client);
    enter(client);
  }

  bool watch(const protocol::Manifest& object) override { return exchange_.watch(object); }
  void admit(ClientId client, const protocol::ObjectId& object) override {
    enter(client);
    exchange_.admit(client, object);
    if (admitted_[object].insert(client).second) share(client, object);
  }
  void let_go(const protocol::ObjectId& object) override {
    end(object);
    exchange_.let_go(object);
  }
  void fetch(const protocol::Manifest& model) override {
    if (!room_)
      return network_.at(network_.now(), [this, id = model.id()] { on_fetched_(id, LentChunks::full()); });
    fetching_ = model.id();
    exchange_.fetch(model);
  }
  void pause(const protocol::ObjectId& model) override {
    end(model);
    exchange_.pause(model);
  }
  void abandon(const protocol::ObjectId& model) override {
    end(model);
    exchange_.abandon(model);
  }
  bool obtainable(const protocol::ObjectId& object) const override { return exchange_.obtainable(object); }
  const swarm::ChunkSet* chunks_of(ClientId client, const protocol::ObjectId& object) const override {
    return exchange_.chunks_of(client, object);
  }
  bool listens(ClientId client) const override { return exchange_.listens(client); }
  void introduce(ClientId client, const std::vector<ClientId>& others,
                 const protocol::ObjectId& object) override {
    exchange_.introduce(client, others, object);
  }
  swarm::RoundWarmup::Seeds warmup_seeds(TaskId task) override { return exchange_.warmup_seeds(task); }

 private:
  // As over a link, the coordinator hears only of objects that it exchanges with this client.
  void share(ClientId client, const protocol::ObjectId& id) {
    const auto members = admitted_.find(id);
    const auto* object = disks_.find(client, id);
    if (object != nullptr && members != admitted_.end() && members->second.contains(client))
      swarm_.share(client, object->bytes->manifest(), object->has, id);
  }
  void share_all(ClientId client) {
    for (const auto& [id, has] : disks_.of(client)) share(client, id);
  }
  void enter(ClientId client) {
    if (!entered_.insert(client).second) return;
    swarm_.enter(client);
    share_all(client);
  }
  // Only a model that is fetched has requests.
  void end(const protocol::ObjectId& object) {
    admitted_.erase(object);
    if (fetching_ != object) return;
    fetching_.reset();
    network_.drop_all();
  }

  const ClientDisks& disks_;
  const bool& room_;  // whether there is room for a model
  OnFetched on_fetched_;
  ScriptedNetwork network_;
  sim::VirtualSwarm swarm_;
  sim::VirtualExchange exchange_;
  std::optional<protocol::ObjectId> fetching_;
  std::map<protocol::ObjectId, std::set<ClientId>> admitted_;
  std::set<ClientId> entered_;
};

}  // namespace fedge::server::shells
