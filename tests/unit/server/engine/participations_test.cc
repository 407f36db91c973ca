#include "server/engine/participations.h"

#include <doctest/doctest.h>

namespace fedge::server {

TEST_CASE("participations: without a bound every client is admitted to every track") {
  Participations none({});
  for (std::uint32_t round = 1; round < 10; ++round) none.count(TrackId(7), ClientId(1), RoundNumber(round));
  CHECK(none.admits(TrackId(7), ClientId(1), RoundNumber(10)));
  CHECK(none.includes(TrackId(7)));
}

TEST_CASE(
    "participations: a client trains for each track its part of the bound, and for later tracks never") {
  Participations two({.most = 5, .tracks = 2});
  for (const std::uint32_t track : {0U, 1U}) {
    std::uint32_t trained = 0;
    for (std::uint32_t round = 1; round <= 9; ++round) {
      if (!two.admits(TrackId(track), ClientId(3), RoundNumber(round))) continue;
      two.count(TrackId(track), ClientId(3), RoundNumber(round));
      ++trained;
    }
    CHECK(trained == 2);
  }
  CHECK(two.admits(TrackId(0), ClientId(4), RoundNumber(9)));
  CHECK_FALSE(two.admits(TrackId(2), ClientId(4), RoundNumber(9)));
  CHECK_FALSE(two.includes(TrackId(2)));
}

TEST_CASE("participations: a phase that restarts counts once, and does not shut its clients out") {
  Participations one({.most = 1});
  one.count(TrackId(), ClientId(1), RoundNumber(4));
  CHECK(one.admits(TrackId(), ClientId(1), RoundNumber(4)));
  one.count(TrackId(), ClientId(1), RoundNumber(4));
  CHECK_FALSE(one.admits(TrackId(), ClientId(1), RoundNumber(5)));
}

TEST_CASE("participations: between two of a client's rounds lie more than the separation") {
  Participations apart({.most = 10, .separation = 3});
  apart.count(TrackId(), ClientId(1), RoundNumber(4));
  CHECK_FALSE(apart.admits(TrackId(), ClientId(1), RoundNumber(7)));
  CHECK(apart.admits(TrackId(), ClientId(1), RoundNumber(8)));
}

}  // namespace fedge::server
