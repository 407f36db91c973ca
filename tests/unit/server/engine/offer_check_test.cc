#include "server/engine/offer_check.h"

#include <doctest/doctest.h>

using namespace fedge;
using namespace fedge::server;

TEST_CASE("offer check: an update that comes too late or too early is told which round there is") {
  CHECK(not_collecting(RoundNumber(1), RoundNumber(2)).message ==
        "round 1 is closed; the current round is 2");
  CHECK(not_collecting(RoundNumber(3), RoundNumber(3)).message == "round 3 is closed");
  CHECK(not_collecting(RoundNumber(5), RoundNumber(3)).message ==
        "round 5 has not started; the current round is 3");
  CHECK(not_collecting(RoundNumber(5), RoundNumber(3)).code == ErrorCode::kStale);
}
