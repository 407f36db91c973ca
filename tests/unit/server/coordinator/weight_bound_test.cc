// Bounds on the number of samples that a client counts as, whatever it claims.
#include <doctest/doctest.h>

#include <map>

#include "server/conductor/conductor.h"
#include "server/run_state.h"
#include "tests/unit/server/engine_harness.h"

namespace fedge::server {

TEST_CASE("round: a client that was told to train on 200 samples cannot offer a weight of 100,000,000") {
  Harness h;
  h.rules.max_samples = SampleCount(100'000'000);
  for (const std::uint32_t client : {0U, 1U, 2U})
    h.feed(RunEngine::ClientArrived{ClientId(client), SampleCount(200)});
  h.feed(RunEngine::Offered{ClientId(0), h.offer(1, 100'000'000)});
  REQUIRE(h.sent_to<protocol::UpdateVerdict>(0));
  CHECK(h.sent_to<protocol::UpdateVerdict>(0)->reason ==
        "the update claims 100000000 samples; by the sample count that the client reported for this run, it "
        "must be from 1 to 200");
  CHECK_FALSE(h.one<RunEngine::Fetch>());
  h.feed(RunEngine::Offered{ClientId(1), h.offer(1, 200)});
  CHECK(h.one<RunEngine::Fetch>());
}

TEST_CASE("round: whatever a client says when it joins, it counts as no more than the partition gives it") {
  Harness h;
  h.rules.max_samples = SampleCount(100'000'000);
  h.rules.batch_size = 20;
  h.feed(RunEngine::ClientArrived{ClientId(0), SampleCount(90'000'000), 1, SampleCount(200)});
  h.arrive({1, 2});
  // The steps are limited to what these samples permit.
  protocol::UpdateOffer offer = h.offer(1, 80'000'000);
  offer.steps = 4'000'000;
  h.feed(RunEngine::Offered{ClientId(0), offer});
  REQUIRE(h.one<RunEngine::Fetch>());
  h.feed(RunEngine::Stored{ClientId(0), RoundNumber(1)});
  REQUIRE(h.one<RunEngine::Fold>());
  CHECK(h.one<RunEngine::Fold>()->weight == SampleCount(200));
  CHECK(h.one<RunEngine::Fold>()->steps == 10);
  // A client that claims fewer samples counts as these.
  h.deliver(1, 1, 50);
  CHECK(h.one<RunEngine::Fold>()->weight == SampleCount(50));
}

TEST_CASE(
    "buffered: whatever a client says when it joins, it counts as no more than the partition gives it") {
  Harness h;
  h.schedule = aggregation::ScheduleSpec{.buffered = true, .buffer_size = 2};
  h.feed(RunEngine::ClientArrived{ClientId(0), SampleCount(1000), 1, SampleCount(200)});
  h.arrive({1, 2});
  std::map<std::uint32_t, std::uint32_t> tasks;
  for (const auto& work : h.all<RunEngine::Assign>()) tasks[work.client.value()] = work.task.round.value();
  REQUIRE(tasks.size() == 3);
  h.feed(RunEngine::Offered{ClientId(0), h.offer(tasks[0], 1000)});
  REQUIRE(h.one<RunEngine::Fetch>());
  h.feed(RunEngine::Stored{ClientId(0), RoundNumber(tasks[0])});
  REQUIRE(h.one<RunEngine::Fold>());
  CHECK(h.one<RunEngine::Fold>()->weight == SampleCount(200));
  h.feed(RunEngine::Offered{ClientId(1), h.offer(tasks[1], 61)});  // it declared 60
  CHECK(h.sent_to<protocol::UpdateVerdict>(1)->code == ErrorCode::kInvalid);
}

TEST_CASE("weight: what the run file allows a client to count as, else what the partition gives it") {
  run::RunConfig config;
  CHECK(counted_at_most(config, 200) == SampleCount(200));
  CHECK(counted_at_most(config, 0) == SampleCount(1));
  CHECK(counted_at_most(config, std::nullopt) == SampleCount(UINT64_MAX));  // no training set here
  config.strategy.max_weight = SampleCount(500);
  CHECK(counted_at_most(config, 200) == SampleCount(500));
  CHECK(counted_at_most(config, std::nullopt) == SampleCount(500));
}

}  // namespace fedge::server
