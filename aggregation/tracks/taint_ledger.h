// TaintLedger: when each client last had a part in each track's model, directly or through the model that
// the track was started from. It generalises the taint set, taint(model) = {x : last > 0}: with the
// round besides, one rule decides about exclusions that forgive the past and about those that do not.
// Owned by whoever trains tracks; not thread-safe. 4 bytes a live track and client.
//
//   initial model       nobody has had a part
//   upload of c         everybody who had a part in the track's model, and c
//   aggregation         the union of its inputs; they all started from the track's own model
//   start from a model  as that model
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "core/ids.h"

namespace fedge::aggregation {

class TaintLedger {
 public:
  // Clients 0 .. clients - 1.
  explicit TaintLedger(std::size_t clients) : clients_(clients) {}

  // The track begins, or begins again, with the initial model.
  void start(TrackId track);
  // The track begins, or begins again, with the model that a live track has now.
  void start(TrackId track, TrackId source);
  // The client's upload of this round (from 1) goes into the track's model. The order of calls does not
  // matter.
  void contribute(TrackId track, ClientId client, RoundNumber round);
  // The last round in which the client had a part in the live track's model; 0: never.
  RoundNumber last(TrackId track, ClientId client) const;
  // Whether a model of the track may go to somebody who excludes `excluded` from round `since` on (from 1):
  // last(track, excluded) < since. An exclusion that forgives the past has the round it began in, a deep one
  // 1, which only a model that the client never had a part in satisfies (Exclusion::since).
  bool permits(TrackId track, ClientId excluded, RoundNumber since) const;
  // Forgets the track.
  void retire(TrackId track);

 private:
  const std::vector<RoundNumber>& of(TrackId track) const;

  std::size_t clients_;
  std::map<TrackId, std::vector<RoundNumber>> last_;  // by track, then client
};

}  // namespace fedge::aggregation
