// A random script: what happens to a run, operation by operation, in both shells.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/rng.h"
#include "server/access/message_allowance.h"
#include "tests/property/sim/shells/daemon_shell.h"
#include "tests/property/sim/shells/puppet.h"
#include "tests/property/sim/shells/simulator_shell.h"

namespace fedge::server::shells {

class Script {
 public:
  Script(const Scene& scene, const std::filesystem::path& directory, std::uint64_t seed)
      : scene_(scene), daemon_(scene, directory), simulator_(scene), draws_(Rng(seed).fork("script")) {
    for (std::uint32_t client = 0; client < scene.config.task.data.partition.clients; ++client)
      puppets_.try_emplace(ClientId(client), scene, ClientId(client), Rng(seed).fork("puppet", client));
  }

  // Plays until the run is over, or this many operations; returns the first difference, or nothing.
  std::string play(std::size_t operations) {
    std::string found = difference(daemon_.seen, simulator_.seen);
    for (std::size_t i = 0; i < operations && found.empty() && !daemon_.seen.over; ++i) {
      log.push_back(step());
      found = difference(daemon_.seen, simulator_.seen);
    }
    return found;
  }
  std::vector<std::string> log;
  const Observed& seen() const { return daemon_.seen; }

 private:
  std::size_t below(std::size_t bound) { return static_cast<std::size_t>(draws_.below(bound)); }
  bool one_in(std::size_t number) { return below(number) == 0; }

  std::string step() {
    if (one_in(stopped_ ? 4 : 30)) return restart();
    if (!stopped_ && one_in(100)) return stop();
    if (one_in(20)) return wait();
    for (std::size_t tries = 0; tries < 8; ++tries) {
      const ClientId client(static_cast<std::uint32_t>(below(scene_.config.task.data.partition.clients)));
      if (const std::string what = step(client); !what.empty())
        return what + " " + std::to_string(client.value());
    }
    return wait();
  }
  // Returns what the client does; empty if it has nothing to do.
  std::string step(ClientId client) {
    Puppet& puppet = puppets_.at(client);
    if (!puppet.here) return one_in(3) ? std::string() : (link(client), "link");
    if (one_in(20)) return leave(client, one_in(5)), "leave";
    if (puppet.described) return answer(client), "answer";
    if (!puppet.outbox.empty() && !one_in(8)) return say(client);
    if (puppet.offered && !one_in(6)) return deliver(client);
    if (puppet.task && one_in(12)) return fail(client);
    if (puppet.can_offer()) return tell(client, puppet.offer()), "offer";
    return {};
  }

  template <class Do>
  void both(Do does) {
    does(daemon_);
    does(simulator_);
    for (auto& [client, puppet] : puppets_) hear(client, puppet);
  }
  // The client looks at the messages that came since.
  void hear(ClientId client, Puppet& puppet) {
    const auto& sent = daemon_.seen.sent[client];
    for (std::size_t& heard = heard_[client]; heard < sent.size(); ++heard) {
      if (std::holds_alternative<protocol::TrainRequest>(sent[heard]))
        for (int i = 0; i < (scene_.config.secure.on ? 3 : 1); ++i) allowance_.asked(client);
      puppet.hear(sent[heard]);
    }
  }
  void tell(ClientId client, const protocol::Message& message) {
    if (!allowance_.answer(client)) return;
    both([&](auto& shell) { shell.receive(client, message); });
  }

  std::string stop() {
    stopped_ = true;
    both([](auto& shell) { shell.stop("enough"); });
    return "stop";
  }
  std::string say(ClientId client) {
    Puppet& puppet = puppets_.at(client);
    const protocol::Message message = puppet.outbox.front();
    if (!one_in(10)) puppet.outbox.pop_front();
    tell(client, message);
    return std::string(protocol::name_of(message));
  }

  void link(ClientId client) {
    puppets_.at(client).connect();
    allowance_.connected(client);
    both([&](auto& shell) { shell.link(client); });
  }
  void leave(ClientId client, bool for_good) {
    Puppet& puppet = puppets_.at(client);
    puppet.here = puppet.described = false;
    if (one_in(2)) puppet.task.reset();
    both([&](auto& shell) { shell.leave(client, for_good); });
  }
  void answer(ClientId client) {
    puppets_.at(client).described = false;
    const bool ready = !one_in(8);
    tell(client, protocol::RunAnswer{.run = scene_.config.id,
                                     .ready = ready,
                                     .samples = SampleCount(1 + below(12)),
                                     .reason = ready ? "" : "the data is not here"});
  }
  std::string deliver(ClientId client) {
    Puppet& puppet = puppets_.at(client);
    const auto object = puppet.offered;
    const bool sound = !one_in(8);
    const auto fault =
        sound ? std::nullopt : std::optional(Error{ErrorCode::kCorrupt, "a chunk does not match its hash"});
    if (!sound || !one_in(6)) puppet.offered.reset();
    daemon_.deliver(client, *object, fault);
    simulator_.deliver(client, object->manifest(), puppet.delivery, fault);
    both([](auto&) {});
    return sound ? "deliver" : "damage";
  }
  std::string fail(ClientId client) {
    const protocol::TrainRequest task = *puppets_.at(client).task;
    tell(client,
         protocol::TaskFailed{.run = task.run, .round = task.round, .reason = "no", .track = task.track});
    return "fail";
  }
  // Time passes: a moment, or up to a deadline, or just before or after it.
  std::string wait() {
    Duration time = seconds(static_cast<double>(below(20)) / 4);
    if (const auto deadline = daemon_.deadline(); deadline && *deadline > daemon_.now() && one_in(2)) {
      const Duration whole = *deadline - daemon_.now();
      const std::array<Duration, 5> times = {whole, whole - Duration(1), whole + Duration(1), whole / 2,
                                             whole / 4 * 3};
      time = times[below(times.size())];
    }
    both([&](auto& shell) { shell.pass(time); });
    return "wait " + std::to_string(to_seconds(time));
  }
  std::string restart() {
    // Two of three restarts are crashes.
    const std::size_t all = daemon_.written().journal.size();
    const std::size_t promised = daemon_.promised();
    const std::size_t entries = one_in(3) ? all : one_in(2) ? promised : promised + below(all - promised + 1);
    const Time then = daemon_.restart({entries, one_in(2), one_in(3)});
    simulator_.restart(then, daemon_.before_restart(), daemon_.rounds_before_restart());
    for (auto& [client, puppet] : puppets_) {
      puppet.here = puppet.described = false;
      hear(client, puppet);
    }
    allowance_ = MessageAllowance(Duration::zero());
    return "restart with " + std::to_string(entries) + " of " + std::to_string(all);
  }

  const Scene& scene_;
  DaemonShell daemon_;
  SimulatorShell simulator_;
  Rng draws_;
  std::map<ClientId, Puppet> puppets_;
  std::map<ClientId, std::size_t> heard_;  // messages that each has looked at
  bool stopped_ = false;
  MessageAllowance allowance_{Duration::zero()};
};

}  // namespace fedge::server::shells
