// ServerlessWarmup: the warm-up of a round whose updates stay with the clients: waits until they have offered
// them, runs the tracker's warm-up among those who have, and ends, in success or not, before three quarters
// of the round's time have passed: then updates are exchanged freely. The same in the coordinator and in the
// simulator. Pure, not thread-safe.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/event.h"
#include "core/time.h"
#include "server/engine/serverless_round.h"
#include "swarm/warmup/round_warmup.h"

namespace fedge::server {

class ServerlessWarmup {
 public:
  ServerlessWarmup(const swarm::WarmupConfig& rules, TaskId task, Time now, Duration deadline)
      : rules_(rules), task_(task), began_(now), deadline_(deadline) {}
  // begin() is to be called whenever somebody offers an update or goes, and after each of these times.
  static Duration gather_within(Duration deadline) { return seconds(0.5 * to_seconds(deadline)); }
  static Duration end_within(Duration deadline) { return seconds(0.75 * to_seconds(deadline)); }

  // Looks whether the warm-up can begin: everybody who is waited for has offered an update, or half of the
  // round's time has passed. True: it has just begun, and tracker() says whom to tell what.
  bool begin(const ServerlessRound& round, const std::function<bool(ClientId)>& listens,
             swarm::RoundWarmup::Seeds seeds, Time now);
  // Null before, or if it could not begin.
  swarm::RoundWarmup* tracker() { return tracker_ ? &*tracker_ : nullptr; }
  // Those of the round's updates that are exchanged in it.
  std::vector<const protocol::Manifest*> updates(const ServerlessRound& round) const;
  // To be called every RoundWarmup::kTick. What members are to be told.
  swarm::RoundWarmup::Orders go_on(Time now, const swarm::RoundWarmup::Look& look, RunId run);
  // Updates are to be exchanged freely.
  bool over() const { return over_; }
  // It will not be carried out, if it is not over.
  void close(const std::string& why);
  protocol::WarmupOver message(RunId run) const;
  // How it went; severity warning if whose update is whose may not have been hidden.
  Event report(Time now) const;

 private:
  swarm::WarmupConfig rules_;
  TaskId task_;
  Time began_;
  Duration deadline_;
  std::optional<swarm::RoundWarmup> tracker_;
  Time warming_since_{};
  bool over_ = false;
  std::string failure_;
};

}  // namespace fedge::server
