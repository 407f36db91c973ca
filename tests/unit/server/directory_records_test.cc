// The information besides the candidates that engines pass to a sampler.
#include <doctest/doctest.h>

#include <vector>

#include "aggregation/samplers/awpsp/aw_psp.h"
#include "tests/unit/server/engine_harness.h"

namespace fedge::server {
namespace {

// A sampler that selects all candidates and records its calls.
class Noting final : public aggregation::Sampler {
 public:
  struct Notes {
    std::vector<std::pair<ClientId, NodeRecord>> described;
    std::vector<std::pair<ClientId, bool>> remembered;
    std::vector<aggregation::Candidate> candidates;
  };
  explicit Noting(Notes& notes) : notes_(notes) {}
  std::vector<aggregation::Selected> select(const aggregation::SelectionRequest& request) override {
    notes_.candidates.assign(request.candidates.begin(), request.candidates.end());
    return everybody_.select(request);
  }
  void remember(const aggregation::Feedback& feedback) override {
    notes_.remembered.emplace_back(feedback.client, feedback.delivered);
  }
  void describe(ClientId client, const NodeRecord& record) override {
    notes_.described.emplace_back(client, record);
  }

 private:
  Notes& notes_;
  aggregation::UniformSampler everybody_;
};

}  // namespace

TEST_CASE("engines: what a client says in the directory reaches the sampler, whether it is there or not") {
  for (const bool buffered : {false, true}) {
    Noting::Notes notes;
    Harness h;
    if (buffered) h.schedule = aggregation::ScheduleSpec{.buffered = true, .buffer_size = 2};
    h.sampler = [&] { return std::make_unique<Noting>(notes); };
    const NodeRecord before{.round = 1, .sequence = 2, .latency_ms = 3, .packet_loss = 0.5, .labels = {1, 2}};
    h.feed(RunEngine::Described{ClientId(7), before});
    CHECK(h.effects.empty());
    h.arrive({0, 1, 2});
    const NodeRecord after{.latency_ms = 9, .labels = {}};
    h.feed(RunEngine::Described{ClientId(1), after});
    REQUIRE(notes.described.size() == 2);
    CHECK(notes.described[0] == std::pair(ClientId(7), before));
    CHECK(notes.described[1] == std::pair(ClientId(1), after));
  }
}

TEST_CASE("engines: labels that the run's data set does not have are not heard") {
  for (const bool buffered : {false, true}) {
    Noting::Notes notes;
    Harness h;
    if (buffered) h.schedule = aggregation::ScheduleSpec{.buffered = true, .buffer_size = 2};
    h.rules.classes = 3;
    h.sampler = [&] { return std::make_unique<Noting>(notes); };
    h.feed(RunEngine::Described{ClientId(7), {.labels = std::vector<double>(900, 1.0)}});
    h.feed(RunEngine::Described{ClientId(8), {.labels = {0, 2}}});
    REQUIRE(notes.described.size() == 2);
    CHECK(notes.described[0].second.labels == std::vector<double>{1, 1, 1});
    CHECK(notes.described[1].second.labels == std::vector<double>{0, 2});
  }
}

TEST_CASE("round: who misses the deadline is remembered as one that failed") {
  Noting::Notes notes;
  Harness h;
  h.sampler = [&] { return std::make_unique<Noting>(notes); };
  h.arrive({0, 1, 2});
  h.deliver(0, 1);
  h.feed(RunEngine::Offered{ClientId(1), h.offer(1)});  // its upload does not finish
  h.now = *h.engine().next_deadline();
  h.feed(Expired{});
  REQUIRE(h.one<RunEngine::CloseRound>());
  CHECK(notes.remembered == std::vector<std::pair<ClientId, bool>>{
                                {ClientId(0), true}, {ClientId(1), false}, {ClientId(2), false}});
}

TEST_CASE("round: a member of a secure sum that disconnects and is excluded for it has failed once") {
  Noting::Notes notes;
  Harness h;
  h.rules.masked = protocol::Codec::kMasked64;
  h.sampler = [&] { return std::make_unique<Noting>(notes); };
  h.arrive({0, 1, 2});
  h.feed(RunEngine::ClientLeft{ClientId(1)});
  h.feed(RunEngine::Failed{ClientId(1), {h.rules.run, RoundNumber(1), ErrorCode::kRefused, "gone", {}}});
  CHECK(notes.remembered == std::vector<std::pair<ClientId, bool>>{{ClientId(1), false}});
  h.arrive({1});  // too late for the session
  h.now = *h.engine().next_deadline();
  h.feed(Expired{});
  CHECK(notes.remembered == std::vector<std::pair<ClientId, bool>>{
                                {ClientId(1), false}, {ClientId(0), false}, {ClientId(2), false}});
}

TEST_CASE("round: a sampler hears of no more samples than an update may count") {
  Noting::Notes notes;
  Harness h;
  h.sampler = [&] { return std::make_unique<Noting>(notes); };
  h.feed(RunEngine::ClientArrived{ClientId(0), SampleCount(~std::uint64_t{0})});
  h.arrive({1, 2});
  REQUIRE(notes.candidates.size() == 3);
  CHECK(notes.candidates[0].samples == h.rules.max_samples);
  CHECK(notes.candidates[1].samples == SampleCount(60));
}

TEST_CASE("round: weighed by inverse probability, factors are the coefficients over the weights' shares") {
  aggregation::AwPspOptions options;
  options.inverse_probability = true;
  Harness h;
  h.rules.first_round_clients = 6;
  h.sampler = [=] { return std::make_unique<aggregation::AwPspSampler>(options); };
  h.arrive({0, 1, 2, 3, 4, 5});
  const auto asked = h.all<RunEngine::Assign>();
  REQUIRE(asked.size() == 3);
  // p = A = 1/2 and n_i / n = 1/6: the coefficient is 4/6, the weight's share 1/3.
  h.deliver(asked[0].client.value(), 1);
  REQUIRE(h.one<RunEngine::Fold>());
  CHECK(h.one<RunEngine::Fold>()->factor == doctest::Approx(2.0));
  // A client that leaves is not replaced; it counts as zeros.
  h.feed(RunEngine::ClientLeft{asked[1].client});
  CHECK(h.all<RunEngine::Assign>().empty());
  CHECK(h.all<RunEngine::Count>().size() == 1);
}

}  // namespace fedge::server
