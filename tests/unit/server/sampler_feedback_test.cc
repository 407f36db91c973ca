// The information that engines pass to the sampler, and how they use its answers.
#include <doctest/doctest.h>

#include <memory>
#include <vector>

#include "aggregation/samplers/md.h"
#include "tests/unit/server/engine_harness.h"

namespace fedge::server {
namespace {

using aggregation::Feedback;

class Listener final : public aggregation::Sampler {
 public:
  explicit Listener(std::vector<Feedback>& heard) : heard_(heard) {}
  std::vector<aggregation::Selected> select(const aggregation::SelectionRequest& request) override {
    return everybody_.select(request);
  }
  void remember(const Feedback& feedback) override { heard_.push_back(feedback); }

 private:
  std::vector<Feedback>& heard_;
  aggregation::UniformSampler everybody_;
};

}  // namespace

TEST_CASE("feedback: both engines pass on what an offer said and how long it took") {
  for (const bool buffered : {false, true}) {
    CAPTURE(buffered);
    std::vector<Feedback> heard;
    Harness h;
    h.sampler = [&] { return std::make_unique<Listener>(heard); };
    if (buffered) h.schedule = aggregation::ScheduleSpec{.buffered = true};
    h.arrive({0, 1, 2});
    protocol::UpdateOffer offer = h.offer(1, 40);
    offer.norm = 2.5;
    offer.train_loss = 0.5;
    offer.loss_rms = 0.75;
    h.now = Time(seconds(7));
    h.feed(RunEngine::Offered{ClientId(1), offer});
    h.feed(RunEngine::Stored{ClientId(1), RoundNumber(1)});
    h.feed(RunEngine::Failed{ClientId(2), {kRun, RoundNumber(1), ErrorCode::kUnavailable, "no"}});
    REQUIRE(heard.size() == 2);
    CHECK(heard[0].client == ClientId(1));
    CHECK(heard[0].round == RoundNumber(1));
    CHECK(heard[0].delivered);
    CHECK(heard[0].samples == SampleCount(40));
    CHECK(heard[0].norm == 2.5);
    CHECK(heard[0].loss == 0.5);
    CHECK(heard[0].loss_rms == 0.75);
    CHECK(heard[0].time == seconds(7));
    CHECK(heard[1].client == ClientId(2));
    CHECK_FALSE(heard[1].delivered);
    CHECK(heard[1].loss_rms == 0);
  }
}

TEST_CASE("md: an update's part of the step is its part of the draws, whatever its samples") {
  Harness h;
  h.rules.clients_per_round = 8;
  h.rules.first_round_clients = 3;
  h.sampler = [] { return std::make_unique<aggregation::MdSampler>(); };
  h.feed(RunEngine::ClientArrived{ClientId(0), SampleCount(100)});
  h.feed(RunEngine::ClientArrived{ClientId(1), SampleCount(300)});
  h.feed(RunEngine::ClientArrived{ClientId(2), SampleCount(600)});
  const auto assigned = h.all<RunEngine::Assign>();
  // The draw from the engine's stream for round 1.
  const std::vector<aggregation::Candidate> pool = {
      {ClientId(0), SampleCount(100)}, {ClientId(1), SampleCount(300)}, {ClientId(2), SampleCount(600)}};
  const auto drawn = aggregation::MdSampler().select({RoundNumber(1), pool, 8, h.rng.fork("sample", 1)});
  REQUIRE(assigned.size() == drawn.size());
  REQUIRE(drawn.size() > 1);
  double weights = 0;  // the aggregator's weights of all clients in the round
  for (const auto& choice : drawn)
    weights += static_cast<double>(pool[choice.client.value()].samples.value());
  for (const auto& choice : drawn) {
    const std::uint64_t samples = pool[choice.client.value()].samples.value();
    h.feed(RunEngine::Offered{choice.client, h.offer(1, samples)});
    h.feed(RunEngine::Stored{choice.client, RoundNumber(1)});
    const auto fold = h.one<RunEngine::Fold>();
    REQUIRE(fold);
    CHECK(static_cast<double>(fold->weight.value()) * fold->factor / weights ==
          doctest::Approx(choice.coefficient).epsilon(1e-12));
  }
  CHECK(h.one<RunEngine::CloseRound>());
}

}  // namespace fedge::server
