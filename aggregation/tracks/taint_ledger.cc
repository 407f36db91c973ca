#include "aggregation/tracks/taint_ledger.h"

#include <algorithm>
#include <utility>

#include "core/check.h"

namespace fedge::aggregation {

void TaintLedger::start(TrackId track) { last_[track].assign(clients_, RoundNumber(0)); }

void TaintLedger::start(TrackId track, TrackId source) {
  std::vector<RoundNumber> copy = of(source);
  last_[track] = std::move(copy);
}

void TaintLedger::contribute(TrackId track, ClientId client, RoundNumber round) {
  const auto it = last_.find(track);
  FEDGE_CHECK(it != last_.end(), "the track is not live");
  FEDGE_CHECK(round.value() > 0, "rounds count from 1");
  if (client.value() >= it->second.size()) it->second.resize(std::size_t{client.value()} + 1, RoundNumber(0));
  RoundNumber& last = it->second[client.value()];
  last = std::max(last, round);
}

RoundNumber TaintLedger::last(TrackId track, ClientId client) const {
  const std::vector<RoundNumber>& rounds = of(track);
  return client.value() < rounds.size() ? rounds[client.value()] : RoundNumber(0);
}

bool TaintLedger::permits(TrackId track, ClientId excluded, RoundNumber since) const {
  return last(track, excluded) < since;
}

void TaintLedger::retire(TrackId track) { last_.erase(track); }

const std::vector<RoundNumber>& TaintLedger::of(TrackId track) const {
  const auto it = last_.find(track);
  FEDGE_CHECK(it != last_.end(), "the track is not live");
  return it->second;
}

}  // namespace fedge::aggregation
