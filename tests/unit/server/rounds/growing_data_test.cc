// Clients whose data grows: they answer the run again, and may claim the larger number of samples.
#include <doctest/doctest.h>

#include "tests/unit/server/engine_harness.h"

namespace fedge::server {

TEST_CASE("round: a client whose data grew may claim its samples once it has answered again") {
  Harness h;
  h.arrive({0, 1, 2});
  // Before it has answered, it may claim no more than it said.
  h.feed(RunEngine::Offered{ClientId(0), h.offer(1, 61)});
  const auto refused = h.sent_to<protocol::UpdateVerdict>(0);
  REQUIRE(refused);
  CHECK_FALSE(refused->accepted);
  CHECK(refused->reason.find("claims 61 samples") != std::string::npos);
  h.feed(RunEngine::ClientArrived{ClientId(1), SampleCount(75)});
  CHECK(h.all<RunEngine::Assign>().empty());  // its task goes on
  h.feed(RunEngine::Offered{ClientId(1), h.offer(1, 75)});
  CHECK(h.one<RunEngine::Fetch>());
  h.feed(RunEngine::Stored{ClientId(1), RoundNumber(1)});
  REQUIRE(h.one<RunEngine::Fold>());
  CHECK(h.one<RunEngine::Fold>()->weight == SampleCount(75));
  // A smaller number takes no samples from a task.
  h.feed(RunEngine::ClientArrived{ClientId(2), SampleCount(10)});
  h.feed(RunEngine::Offered{ClientId(2), h.offer(1, 60)});
  CHECK(h.one<RunEngine::Fetch>());
}

TEST_CASE("round: an answer after the offer changes no weight") {
  Harness h;
  h.arrive({0, 1, 2});
  h.feed(RunEngine::Offered{ClientId(0), h.offer(1, 10)});
  h.feed(RunEngine::ClientArrived{ClientId(0), SampleCount(50'000)});
  h.feed(RunEngine::Stored{ClientId(0), RoundNumber(1)});
  REQUIRE(h.one<RunEngine::Fold>());
  CHECK(h.one<RunEngine::Fold>()->weight == SampleCount(10));
}

}  // namespace fedge::server
