// TaintLedger: the last round in which each client contributed to each track's model, directly or through the
// model that the track was started from. It generalises the taint set, taint(model) = {x : last > 0}. Because
// it keeps the round, one rule covers exclusions that forgive the past and exclusions that do not. Owned by
// the code that trains tracks; not thread-safe. 4 bytes a live track and client
// number, up to the highest that contributed.
//
//   initial model       no contributors
//   upload of c         the contributors of the track's model, and c
//   aggregation         the union of its inputs; they all started from the track's own model
//   start from a model  the contributors of that model
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "core/ids.h"

namespace fedge::aggregation {

class TaintLedger {
 public:
  // For this many clients; others may contribute, too.
  explicit TaintLedger(std::size_t clients) : clients_(clients) {}

  // Starts or restarts the track with the initial model.
  void start(TrackId track);
  // Starts or restarts the track with the current model of a live track.
  void start(TrackId track, TrackId source);
  // Records that the client's upload of this round (from 1) enters the track's model. Calls may come in any
  // order.
  void contribute(TrackId track, ClientId client, RoundNumber round);
  // The last round in which the client contributed to the live track's model; 0: never.
  RoundNumber last(TrackId track, ClientId client) const;
  // True if a model of the track may go to a client that excludes `excluded` from round `since` on (from 1):
  // last(track, excluded) < since. An exclusion that forgives the past has the round in which it began. A
  // deep one has 1: only a model without any contribution of the client satisfies it (Exclusion::since).
  bool permits(TrackId track, ClientId excluded, RoundNumber since) const;
  // Forgets the track.
  void retire(TrackId track);

 private:
  const std::vector<RoundNumber>& of(TrackId track) const;

  std::size_t clients_;
  std::map<TrackId, std::vector<RoundNumber>> last_;  // by track, then client
};

}  // namespace fedge::aggregation
