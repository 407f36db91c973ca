// Participations: in how many rounds each client has trained for each track, for runs whose privacy bounds
// them. A client's participations are divided among the tracks in advance: if tracks shared them, clients
// that a track excludes could influence who trains it. Later tracks get none. Pure; O(log clients) a call.
// Memory: a map entry for each client and track that has trained.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>

#include "core/ids.h"

namespace fedge::server {

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

}  // namespace fedge::server
