// Which clients a round's draw leaves out: those that have trained as often as the run's privacy allows, and
// those whose last tasks failed. Pure; O(log clients) a call. Memory: a map entry for each client and track
// that has trained in a run with bounds, and for each client whose last task failed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>

#include "core/ids.h"

namespace fedge::server {

// Participations: in how many rounds each client has trained for each track. A client's participations are
// divided among the tracks in advance: if tracks shared them, clients that a track excludes could influence
// who trains it. Later tracks get none.
class Participations {
 public:
  struct Bounds {
    std::uint64_t most =
        UINT64_MAX;                // rounds in which a client trains, over all tracks; the default: no bound
    std::uint64_t separation = 0;  // minimum number of rounds between two of them
    std::size_t tracks = 1;        // the first so many tracks share them
  };
  explicit Participations(const Bounds& bounds) : bounds_(bounds) {}

  bool bounded() const { return bounds_.most < UINT64_MAX; }
  // Returns whether the track may train clients at all.
  bool includes(TrackId track) const { return !bounded() || track.value() < bounds_.tracks; }
  // Returns whether the client may train for the track in this round.
  bool admits(TrackId track, ClientId client, RoundNumber round) const {
    if (!bounded()) return true;
    if (!includes(track)) return false;
    const auto found = counts_.find({track, client});
    if (found == counts_.end() || found->second.last == round) return true;
    return found->second.times < bounds_.most / bounds_.tracks &&
           round.value() - found->second.last.value() > bounds_.separation;
  }
  // Counts the client's training in this round, once if the round's phase restarts.
  void count(TrackId track, ClientId client, RoundNumber round) {
    if (!bounded()) return;
    Count& count = counts_[{track, client}];
    count.times += count.last == round ? 0U : 1U;
    count.last = round;
  }

 private:
  struct Count {
    std::uint64_t times = 0;
    RoundNumber last;
  };
  Bounds bounds_;
  std::map<std::pair<TrackId, ClientId>, Count> counts_;
};

// Quarantine: a client whose last `after` trainings failed gets no tasks for `rounds` rounds. After that, one
// more failure is enough to quarantine it again, until an update of it is accepted. A failure is what the
// client is at fault for: it reported that it cannot train, or its update was damaged or invalid. A lost
// connection or a passed deadline is none. Two failures in one round count once.
class Quarantine {
 public:
  struct Rule {
    std::uint32_t after = 0;  // 0: no client is quarantined
    std::uint32_t rounds = 1;
  };
  explicit Quarantine(const Rule& rule) : rule_(rule) {}

  const Rule& rule() const { return rule_; }
  bool is_empty() const { return failures_.empty(); }
  // Counts a failure. Returns whether it puts the client into quarantine, from the next round on.
  bool failed(ClientId client, RoundNumber round) {
    if (rule_.after == 0) return false;
    Failures& failures = failures_[client];
    if (failures.last == round) return false;
    failures.last = round;
    return ++failures.count >= rule_.after;
  }
  void succeeded(ClientId client) { failures_.erase(client); }
  // Returns whether the client may get a task in this round.
  bool admits(ClientId client, RoundNumber round) const {
    const auto found = failures_.find(client);
    return found == failures_.end() || found->second.count < rule_.after || round <= found->second.last ||
           round.value() - found->second.last.value() > rule_.rounds;
  }
  // Failures in succession.
  std::uint32_t failures(ClientId client) const {
    const auto found = failures_.find(client);
    return found == failures_.end() ? 0 : found->second.count;
  }

 private:
  struct Failures {
    std::uint32_t count = 0;
    RoundNumber last;
  };
  Rule rule_;
  std::map<ClientId, Failures> failures_;
};

}  // namespace fedge::server
