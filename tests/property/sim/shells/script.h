// A random script: what happens to a run, operation by operation, in both shells.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "core/rng.h"
#include "tests/property/sim/shells/serverless_steps.h"
#include "tests/property/sim/shells/two_shells.h"

namespace fedge::server::shells {

class Script {
 public:
  Script(const Scene& scene, const std::filesystem::path& directory, std::uint64_t seed)
      : scene_(scene),
        draws_(Rng(seed).fork("script")),
        shells_(scene, directory, Rng(seed)),
        serverless_(shells_, Rng(seed).fork("serverless")) {}

  // Plays until the run is over, or the shells ask different clients for a model, or this many operations.
  // Returns the first difference, or nothing.
  std::string play(std::size_t operations) {
    std::string found = shells_.difference();
    for (std::size_t i = 0; i < operations && found.empty() && !seen().over && shells_.ask_the_same(); ++i) {
      log.push_back(step());
      found = shells_.difference();
    }
    return found;
  }
  std::vector<std::string> log;
  bool ended_early() const { return !shells_.ask_the_same(); }
  const Observed& seen() const { return shells_.daemon().seen; }

 private:
  std::size_t below(std::size_t bound) { return static_cast<std::size_t>(draws_.below(bound)); }
  bool one_in(std::size_t number) { return below(number) == 0; }

  std::string step() {
    if (one_in(stopped_ ? 4 : 30 * calm_)) return restart();
    if (!stopped_ && one_in(100)) return stop();
    if (one_in(warming() ? 2 : 20)) return wait();
    if (scene_.config.dissemination.serverless && one_in(room_ ? 40 : 5)) return set_room();
    for (std::size_t tries = 0; tries < 8; ++tries) {
      const ClientId client(static_cast<std::uint32_t>(below(scene_.config.task.data.partition.clients)));
      if (const std::string what = step(client); !what.empty())
        return what + " " + std::to_string(client.value());
    }
    return wait();
  }
  // Returns what the client does; empty if it has nothing to do.
  std::string step(ClientId client) {
    Puppet& puppet = shells_.puppet(client);
    if (!puppet.here) return one_in(3) ? std::string() : (shells_.link(client), "link");
    if (one_in(20 * calm_)) return leave(client);
    if (puppet.described) return answer(client);
    if (scene_.config.dissemination.serverless) return exchange(client);
    if (!puppet.outbox.empty() && !one_in(8)) return say(client);
    if (puppet.offered && !one_in(6)) return deliver(client);
    if (puppet.task && one_in(12)) return fail(client);
    if (puppet.can_offer()) return shells_.offer(client), "offer";
    return {};
  }
  // In a serverless run, a client's offer is followed by an exchange that may fail.
  std::string exchange(ClientId client) {
    Puppet& puppet = shells_.puppet(client);
    if (puppet.task && one_in(25 * calm_)) return fail(client);
    if (puppet.task && one_in(puppet.offered ? 15 : 2)) {
      const auto update = puppet.part().update_for(*puppet.task);
      shells_.offer(client);
      if (puppet.here && !one_in(6)) serverless_.keep(client, update);
      return "offer";
    }
    return serverless_.step(client);
  }

  std::string stop() {
    stopped_ = true;
    shells_.stop();
    return "stop";
  }
  std::string set_room() {
    room_ = !room_;
    shells_.set_room(room_);
    return room_ ? "room" : "no room";
  }
  std::string say(ClientId client) {
    Puppet& puppet = shells_.puppet(client);
    const protocol::Message message = puppet.outbox.front();
    if (!one_in(10)) puppet.outbox.pop_front();
    shells_.tell(client, message);
    return std::string(protocol::name_of(message));
  }
  std::string leave(ClientId client) {
    if (one_in(2)) shells_.puppet(client).task.reset();
    if (one_in(4)) shells_.lose_disk(client);
    shells_.leave(client, one_in(5));
    return "leave";
  }
  std::string answer(ClientId client) {
    const bool ready = !one_in(8);
    shells_.answer(client, ready, 1 + below(12));
    return "answer";
  }
  std::string deliver(ClientId client) {
    Puppet& puppet = shells_.puppet(client);
    const auto object = puppet.offered;
    const bool sound = !one_in(8);
    if (!sound || !one_in(6)) puppet.offered.reset();
    shells_.deliver(
        client, *object,
        sound ? std::nullopt : std::optional(Error{ErrorCode::kCorrupt, "a chunk does not match its hash"}));
    return sound ? "deliver" : "damage";
  }
  std::string fail(ClientId client) {
    const protocol::TrainRequest task = *shells_.puppet(client).task;
    shells_.tell(client, protocol::TaskFailed{
                             .run = task.run, .round = task.round, .reason = "no", .track = task.track});
    return "fail";
  }
  // Whether the next deadline is a tick of a warm-up.
  bool warming() const {
    const auto deadline = shells_.daemon().deadline();
    return scene_.config.dissemination.warmup && deadline &&
           *deadline <= shells_.daemon().now() + swarm::RoundWarmup::kTick;
  }
  // Time passes: a moment, or up to a deadline, or just before or after it.
  std::string wait() {
    Duration time = seconds(static_cast<double>(below(20)) / 4);
    const Time now = shells_.daemon().now();
    if (const auto deadline = shells_.daemon().deadline();
        deadline && *deadline > now && !one_in(warming() ? 20 : 2)) {
      const Duration whole = *deadline - now;
      const std::array<Duration, 5> times = {whole, whole - Duration(1), whole + Duration(1), whole / 2,
                                             whole / 4 * 3};
      time = times[below(times.size())];
    }
    shells_.pass(time);
    return "wait " + std::to_string(to_seconds(time));
  }
  std::string restart() {
    // Two of three restarts are crashes.
    const std::size_t all = shells_.daemon().disk().written().journal.size();
    const std::size_t promised = shells_.daemon().disk().promised();
    const std::size_t entries = one_in(3) ? all : one_in(2) ? promised : promised + below(all - promised + 1);
    shells_.restart({entries, one_in(2), one_in(3)});
    return "restart with " + std::to_string(entries) + " of " + std::to_string(all);
  }

  const Scene& scene_;
  Rng draws_;
  TwoShells shells_;
  ServerlessSteps serverless_;
  // A warm-up begins only after several clients have offered updates without disturbance.
  std::size_t calm_ = scene_.config.dissemination.warmup ? 5 : 1;
  bool stopped_ = false;
  bool room_ = true;
};

}  // namespace fedge::server::shells
