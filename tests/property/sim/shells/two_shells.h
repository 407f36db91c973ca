// Both shells and their clients: whatever happens, happens in both.
#pragma once

#include <map>
#include <string>
#include <utility>

#include "core/rng.h"
#include "server/access/message_allowance.h"
#include "tests/property/sim/shells/daemon_shell.h"
#include "tests/property/sim/shells/puppet.h"
#include "tests/property/sim/shells/simulator_shell.h"

namespace fedge::server::shells {

class TwoShells {
 public:
  TwoShells(const Scene& scene, const std::filesystem::path& directory, const Rng& draws)
      : scene_(scene), daemon_(scene, disks_, directory), simulator_(scene, disks_) {
    for (std::uint32_t client = 0; client < scene.config.task.data.partition.clients; ++client)
      puppets_.try_emplace(ClientId(client), scene, ClientId(client), draws.fork("puppet", client));
  }

  const Scene& scene() const { return scene_; }
  const DaemonShell& daemon() const { return daemon_; }
  Puppet& puppet(ClientId client) { return puppets_.at(client); }
  const ClientDisks& disks() const { return disks_; }
  const ServerlessPart::Objects& updates() const { return updates_; }
  std::shared_ptr<protocol::StoredObject> model(const protocol::ObjectId& id) { return daemon_.model(id); }
  // Returns the first difference between the shells; empty if there is none.
  std::string difference() const { return shells::difference(daemon_.seen, simulator_.seen); }
  // False if several clients hold a model and each shell asks another one. Real time decides: a client that
  // chokes the coordinator again does so at a moment of its own.
  bool ask_the_same() const { return daemon_.seen.asked == simulator_.seen.asked; }

  void link(ClientId client) {
    puppet(client).connect();
    allowance_.connected(client);
    both([&](auto& shell) { shell.link(client); });
  }
  void leave(ClientId client, bool for_good) {
    puppet(client).here = puppet(client).described = false;
    both([&](auto& shell) { shell.leave(client, for_good); });
  }
  // The client loses what it had fetched.
  void lose_disk(ClientId client) { disks_.clear(client); }
  // A client that sends what nobody asked for is disconnected.
  void tell(ClientId client, const protocol::Message& message) {
    const bool bounded = std::holds_alternative<protocol::UpdateHeld>(message) ||
                         std::holds_alternative<protocol::AggregateMade>(message);
    if (!bounded && !allowance_.answer(client)) return;
    const std::size_t before = daemon_.seen.unasked.size();
    both([&](auto& shell) { shell.receive(client, message); });
    if (daemon_.seen.unasked.size() > before) leave(client, false);
  }
  void answer(ClientId client, bool ready, std::uint64_t samples) {
    puppet(client).described = false;
    tell(client, protocol::RunAnswer{.run = scene_.config.id,
                                     .ready = ready,
                                     .samples = SampleCount(samples),
                                     .reason = ready ? "" : "the data is not here"});
  }
  // In serverless runs, others may fetch the update from its client.
  void offer(ClientId client, bool sound = false) {
    Puppet& owner = puppet(client);
    const protocol::UpdateOffer offer = owner.offer(sound);
    if (scene_.config.dissemination.serverless) {
      updates_.insert_or_assign(owner.offered->manifest().id(), owner.offered);
      simulator_.hold(client, {.task = owner.task->task(),
                               .coverage = owner.delivery.coverage,
                               .training = {},
                               .values = owner.delivery.values});
    }
    tell(client, offer);
  }
  void deliver(ClientId client, protocol::StoredObject& object, const std::optional<Error>& fault) {
    daemon_.deliver(client, object, fault);
    simulator_.deliver(client, object.manifest(), puppet(client).delivery, fault);
    hear();
  }
  // The client announces these chunks of an object.
  void announce(ClientId client, ClientDisks::Object object) {
    const protocol::ObjectId id = object.bytes->manifest().id();
    disks_.put(client, std::move(object));
    both([&](auto& shell) { shell.announce(client, id); });
  }
  // The client answers the coordinator's requests for its model's chunks; with `fault`, each ends with this
  // error, and the coordinator counts them as chunks that the client does not have.
  void answer_requests(ClientId client, protocol::StoredObject& model, const std::optional<Error>& fault) {
    if (fault) disks_.remove(client, model.manifest().id());
    daemon_.answer_requests(client, model, fault);
    simulator_.answer_requests(client, fault);
    hear();
  }
  void set_room(bool room) {
    both([&](auto& shell) { shell.set_room(room); });
  }
  void pass(Duration time) {
    both([&](auto& shell) { shell.pass(time); });
  }
  void stop() {
    both([](auto& shell) { shell.stop("enough"); });
  }
  void restart(const Crash& crash) {
    const Time then = daemon_.restart(crash);
    simulator_.restart(then, daemon_.before_restart(), daemon_.rounds_before_restart());
    for (auto& [client, puppet] : puppets_) {
      puppet.here = puppet.described = false;
      puppet.part().restarted();
    }
    hear();
    allowance_ = MessageAllowance(Duration::zero(), 0);
  }

 private:
  template <class Do>
  void both(Do does) {
    does(daemon_);
    does(simulator_);
    hear();
  }
  // The clients look at the messages that came since.
  void hear() {
    for (auto& [client, puppet] : puppets_) {
      const auto& sent = daemon_.seen.sent[client];
      for (std::size_t& heard = heard_[client]; heard < sent.size(); ++heard) {
        if (std::holds_alternative<protocol::TrainRequest>(sent[heard]))
          for (int i = 0; i < (scene_.config.secure.on ? 3 : 1); ++i) allowance_.asked(client);
        puppet.hear(sent[heard]);
      }
    }
  }

  const Scene& scene_;
  ClientDisks disks_;
  DaemonShell daemon_;
  SimulatorShell simulator_;
  std::map<ClientId, Puppet> puppets_;
  std::map<ClientId, std::size_t> heard_;  // messages that each has looked at
  ServerlessPart::Objects updates_;        // of serverless rounds
  MessageAllowance allowance_{Duration::zero(), 0};
};

}  // namespace fedge::server::shells
