// ServerlessWarmup: the warm-up of a serverless round. It waits until clients have offered updates and runs
// the tracker's warm-up among them. It ends, successfully or not, within three quarters of the round's
// deadline; updates are then exchanged freely. The same in the coordinator and in the simulator. Pure, not
// thread-safe.
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
  // Call begin() after each offer and disconnect, and when each of these times has passed.
  static Duration gather_within(Duration deadline) { return seconds(0.5 * to_seconds(deadline)); }
  static Duration end_within(Duration deadline) { return seconds(0.75 * to_seconds(deadline)); }

  // Begins the warm-up if all awaited clients have offered updates, or if half of the deadline has passed
  // and enough have. Returns true if it has just begun; tracker() then holds the plans to send.
  bool begin(const ServerlessRound& round, const std::function<bool(ClientId)>& listens,
             swarm::RoundWarmup::Seeds seeds, Time now);
  // Null before the warm-up, or if it could not begin.
  swarm::RoundWarmup* tracker() { return tracker_ ? &*tracker_ : nullptr; }
  // Returns the round's updates that the warm-up exchanges.
  std::vector<const protocol::Manifest*> updates(const ServerlessRound& round) const;
  // Call every RoundWarmup::kTick. Returns the orders for the members.
  swarm::RoundWarmup::Orders go_on(Time now, const swarm::RoundWarmup::Look& look, RunId run);
  // Returns whether updates are exchanged freely.
  bool over() const { return over_; }
  // Ends the warm-up as failed, unless it is over.
  void close(const std::string& why);
  protocol::WarmupOver message(RunId run) const;
  // Returns the event about the result; a warning if the owners of updates may not have been hidden.
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
