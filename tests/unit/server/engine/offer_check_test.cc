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

TEST_CASE("offer check: a masked update that states the energy of its training is refused") {
  RoundRules rules{.run = RunId(5), .chunk_size = 4096, .parameters = 10};
  rules.masked = protocol::Codec::kMasked64;
  protocol::UpdateOffer offer{.run = RunId(5), .samples = SampleCount(1), .steps = 1};
  offer.update.codec = protocol::Codec::kMasked64;
  offer.update.chunk_size = 4096;
  offer.update.coverage = Coverage::all(10);
  CHECK_FALSE(check_offer(rules, {offer.update.coverage, SampleCount(1)}, offer));
  offer.joules = 0.5;
  const auto refused = check_offer(rules, {offer.update.coverage, SampleCount(1)}, offer);
  REQUIRE(refused);
  CHECK(refused->message == "a masked update must not state the energy of its training");
}
