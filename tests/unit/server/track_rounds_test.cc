// Rounds of several tracks: RoundEngine's track phases.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tests/unit/server/engine_harness.h"

namespace fedge::server {
namespace {

using aggregation::DisagreementKind;

// Three clients; client 0 wants a model without client 1.
Harness disagreeing(bool strict = false) {
  Harness h;
  h.policy.disagreements.push_back({.kind = DisagreementKind::kInbound,
                                    .clients = {ClientId(0)},
                                    .against = {ClientId(1)},
                                    .until_round = {}});
  h.policy.strict = strict;
  return h;
}

std::vector<std::uint32_t> asked(const Harness& h) {
  std::vector<std::uint32_t> clients;
  for (const auto& work : h.all<RunEngine::Assign>()) clients.push_back(work.client.value());
  return clients;
}

protocol::UpdateOffer offer_for(const Harness& h, std::uint32_t round, std::uint32_t track) {
  protocol::UpdateOffer offer = h.offer(round);
  offer.track = TrackId(track);
  return offer;
}

void deliver_to(Harness& h, std::uint32_t client, std::uint32_t round, std::uint32_t track) {
  h.feed(RunEngine::Offered{ClientId(client), offer_for(h, round, track)});
  REQUIRE(h.one<RunEngine::Fetch>());
  h.feed(RunEngine::Stored{ClientId(client), {RoundNumber(round), TrackId(track)}});
  REQUIRE(h.one<RunEngine::Fold>());
  CHECK(h.one<RunEngine::Fold>()->task.track == TrackId(track));
}

}  // namespace

TEST_CASE("turns: a round trains one track after the other, each by its members, and ends with the last") {
  Harness h = disagreeing();
  h.arrive({0, 1, 2});
  REQUIRE(h.one<RunEngine::StartTrack>());
  CHECK(h.one<RunEngine::StartTrack>()->track == TrackId(1));
  CHECK(asked(h) == std::vector<std::uint32_t>{0, 1, 2});
  for (const auto& work : h.all<RunEngine::Assign>()) CHECK(work.task == TaskId{RoundNumber(1), TrackId(0)});
  for (const std::uint32_t client : {0U, 1U, 2U}) deliver_to(h, client, 1, 0);
  REQUIRE(h.one<RunEngine::CloseRound>());
  CHECK_FALSE(h.one<RunEngine::CloseRound>()->ends_round);
  CHECK(h.one<RunEngine::CloseRound>()->description->exclude.empty());

  h.feed(RunEngine::Committed{RoundNumber(1), TrackId(0)});
  CHECK(asked(h) == std::vector<std::uint32_t>{0, 2});
  for (const auto& work : h.all<RunEngine::Assign>()) CHECK(work.task == TaskId{RoundNumber(1), TrackId(1)});
  for (const std::uint32_t client : {0U, 2U}) deliver_to(h, client, 1, 1);
  REQUIRE(h.one<RunEngine::CloseRound>());
  CHECK(h.one<RunEngine::CloseRound>()->ends_round);
  CHECK(h.one<RunEngine::CloseRound>()->track == TrackId(1));
  CHECK(h.one<RunEngine::CloseRound>()->description->owners == std::vector<std::string>{"0"});

  h.feed(RunEngine::Committed{RoundNumber(1), TrackId(1)});
  CHECK(h.engine().round() == RoundNumber(2));
  CHECK(h.all<RunEngine::StartTrack>().empty());
  CHECK(h.all<RunEngine::Assign>().front().task == TaskId{RoundNumber(2), TrackId(0)});
}

TEST_CASE("turns: an update that was trained on another track's model is not taken, however late it comes") {
  Harness h = disagreeing();
  h.arrive({0, 1, 2});
  deliver_to(h, 0, 1, 0);
  deliver_to(h, 1, 1, 0);
  // Client 2 is slow: the track phase ends without it, and it offers in the next phase.
  h.now = *h.engine().next_deadline();
  h.feed(Expired{});
  REQUIRE(h.one<RunEngine::CloseRound>());
  h.feed(RunEngine::Committed{RoundNumber(1), TrackId(0)});
  h.feed(RunEngine::Offered{ClientId(2), offer_for(h, 1, 0)});
  CHECK(h.all<RunEngine::Fetch>().empty());
  REQUIRE(h.sent_to<protocol::UpdateVerdict>(2));
  CHECK_FALSE(h.sent_to<protocol::UpdateVerdict>(2)->accepted);
  CHECK(h.sent_to<protocol::UpdateVerdict>(2)->code == ErrorCode::kStale);
  CHECK(h.sent_to<protocol::UpdateVerdict>(2)->track == TrackId(0));
  // An update whose upload ends after its track phase is discarded, too.
  h.feed(RunEngine::Stored{ClientId(2), {RoundNumber(1), TrackId(0)}});
  CHECK(h.all<RunEngine::Fold>().empty());
  CHECK(h.one<RunEngine::Discard>());
  // The client's correct update for this track is accepted.
  deliver_to(h, 2, 1, 1);
}

TEST_CASE("turns: who is excluded cannot take part, not by an offer and not as a substitute") {
  Harness h = disagreeing();
  h.rules.clients_per_round = 2;
  h.arrive({0, 1, 2});
  for (const auto& work : h.all<RunEngine::Assign>()) deliver_to(h, work.client.value(), 1, 0);
  h.feed(RunEngine::Committed{RoundNumber(1), TrackId(0)});
  CHECK(asked(h) == std::vector<std::uint32_t>{0, 2});
  h.feed(RunEngine::Offered{ClientId(1), offer_for(h, 1, 1)});
  CHECK(h.all<RunEngine::Fetch>().empty());
  CHECK_FALSE(h.sent_to<protocol::UpdateVerdict>(1)->accepted);
  h.feed(RunEngine::ClientLeft{ClientId(2)});
  CHECK(asked(h).empty());  // client 1 is connected and idle, and stays idle
  h.feed(RunEngine::ClientLeft{ClientId(1)});
  h.feed(RunEngine::ClientArrived{ClientId(1), SampleCount(60)});
  CHECK(asked(h).empty());
  h.feed(RunEngine::ClientArrived{ClientId(2), SampleCount(60)});
  CHECK(asked(h) == std::vector<std::uint32_t>{2});
}

TEST_CASE(
    "turns: a client that has withdrawn is connected and has no work, and does not count as available") {
  Harness h;
  h.policy.disagreements.push_back(
      {.kind = DisagreementKind::kFull, .clients = {ClientId(1)}, .until_round = {}});
  h.rules.min_available = 3;
  h.arrive({0, 1, 2});
  CHECK(asked(h).empty());
  h.feed(RunEngine::ClientArrived{ClientId(3), SampleCount(60)});
  CHECK(asked(h) == std::vector<std::uint32_t>{0, 2, 3});
}

TEST_CASE("turns: whether enough are available goes by the round to come, not by the last one") {
  Harness h;
  h.policy.disagreements.push_back(
      {.kind = DisagreementKind::kFull, .clients = {ClientId(1)}, .until_round = RoundNumber(1)});
  h.rules.min_available = 2;
  h.rules.clients_per_round = 2;
  h.arrive({0, 1, 2});
  CHECK(asked(h) == std::vector<std::uint32_t>{0, 2});
  for (const std::uint32_t client : {0U, 2U}) h.deliver(client, 1);
  h.feed(RunEngine::ClientLeft{ClientId(0)});
  h.feed(RunEngine::Committed{RoundNumber(1), TrackId(0)});
  CHECK(asked(h) == std::vector<std::uint32_t>{1, 2});  // client 1 is back in round 2
}

TEST_CASE("turns: when all have withdrawn the run waits, and goes on when somebody is back") {
  Harness h;
  aggregation::Policy policy = h.policy;
  h.arrive({0, 1, 2});
  for (const std::uint32_t client : {0U, 1U, 2U}) h.deliver(client, 1);
  policy.disagreements.push_back({.kind = DisagreementKind::kFull,
                                  .clients = {ClientId(0), ClientId(1), ClientId(2)},
                                  .until_round = {}});
  h.feed(RunEngine::PolicyChanged{policy});
  h.feed(RunEngine::Committed{RoundNumber(1), TrackId(0)});
  CHECK(h.engine().waiting() == RunEngine::Waiting{RoundNumber(2), 0, 1});
  CHECK(asked(h).empty());
  policy.disagreements.clear();
  h.feed(RunEngine::PolicyChanged{policy});
  CHECK(asked(h).size() == 3);
  CHECK_FALSE(h.engine().waiting());
}

TEST_CASE("turns: a policy that turns strict in mid-round leaves the round as it is") {
  Harness h = disagreeing();
  h.arrive({0, 1, 2});
  h.feed(RunEngine::PolicyChanged{disagreeing(/*strict=*/true).policy});
  h.feed(RunEngine::ClientLeft{ClientId(0)});
  h.feed(RunEngine::ClientArrived{ClientId(0), SampleCount(60)});
  CHECK(asked(h) == std::vector<std::uint32_t>{0});
}

TEST_CASE("turns: an excluded client's records, capability and feedback are not heard of in the track") {
  struct Listener final : aggregation::Sampler {
    explicit Listener(std::vector<std::uint32_t>& to) : heard(to) {}
    std::vector<aggregation::Selected> select(const aggregation::SelectionRequest& request) override {
      for (const auto& candidate : request.candidates) heard.push_back(candidate.client.value());
      return aggregation::UniformSampler().select(request);
    }
    void remember(const aggregation::Feedback& feedback) override {
      heard.push_back(feedback.client.value());
    }
    void describe(ClientId client, const NodeRecord&) override { heard.push_back(client.value()); }
    std::vector<std::uint32_t>& heard;
  };
  std::vector<std::vector<std::uint32_t>> heard(2);
  std::size_t made = 0;
  Harness h = disagreeing();
  h.sampler = [&] { return std::make_unique<Listener>(heard.at(made++)); };
  h.arrive({0, 1, 2});
  for (const std::uint32_t client : {0U, 1U, 2U}) {
    h.feed(RunEngine::Described{ClientId(client), {}});
  }
  for (const std::uint32_t client : {0U, 1U, 2U}) deliver_to(h, client, 1, 0);
  h.feed(RunEngine::Committed{RoundNumber(1), TrackId(0)});
  h.feed(RunEngine::Described{ClientId(1), {}});
  for (const std::uint32_t client : {0U, 2U}) deliver_to(h, client, 1, 1);
  CHECK(std::count(heard[0].begin(), heard[0].end(), 1U) == 4);  // as candidate, in two records, in feedback
  CHECK(std::count(heard[1].begin(), heard[1].end(), 1U) == 0);
  CHECK(std::count(heard[1].begin(), heard[1].end(), 2U) == 3);
}

// A sampler that keeps the latest description of each client, and forgets clients that left.
struct Knowing final : aggregation::Sampler {
  using Latencies = std::map<std::uint32_t, double>;
  explicit Knowing(Latencies& to) : known(to) {}
  std::vector<aggregation::Selected> select(const aggregation::SelectionRequest& request) override {
    for (const ClientId client : request.left) known.erase(client.value());
    return aggregation::UniformSampler().select(request);
  }
  void describe(ClientId client, const NodeRecord& record) override {
    known[client.value()] = record.latency_ms.value();
  }
  Latencies& known;
};

TEST_CASE("turns: a track that begins later knows its members' last records, and no one else's") {
  std::vector<Knowing::Latencies> known(2);
  std::size_t made = 0;
  Harness h = disagreeing();
  h.policy.disagreements[0].from_round = RoundNumber(2);
  h.sampler = [&] { return std::make_unique<Knowing>(known.at(made++)); };
  for (const std::uint32_t client : {0U, 1U, 2U, 7U}) {
    h.feed(RunEngine::Described{ClientId(client), {.latency_ms = 99, .labels = {}}});
    h.feed(RunEngine::Described{ClientId(client), {.latency_ms = 10.0 + client, .labels = {}}});
  }
  h.arrive({0, 1, 2});
  CHECK(made == 1);
  for (const std::uint32_t client : {0U, 1U, 2U}) h.deliver(client, 1);
  h.feed(RunEngine::Committed{RoundNumber(1), TrackId(0)});
  REQUIRE(made == 2);
  CHECK(known[1] == Knowing::Latencies{{0, 10}, {2, 12}, {7, 17}});
  CHECK(known[0] == Knowing::Latencies{{0, 10}, {1, 11}, {2, 12}, {7, 17}});
}

TEST_CASE("turns: what a client has said counts while it is a member, and again when it has come back") {
  Knowing::Latencies known;
  Harness h;
  h.rules.rounds = 4;
  h.rules.first_round_clients = 1;
  h.rules.clients_per_round = 1;
  h.policy.disagreements.push_back(
      {.kind = DisagreementKind::kFull, .clients = {ClientId(1)}, .until_round = RoundNumber(1)});
  h.policy.disagreements.push_back({.kind = DisagreementKind::kFull,
                                    .clients = {ClientId(2)},
                                    .from_round = RoundNumber(2),
                                    .until_round = RoundNumber(2)});
  h.sampler = [&] { return std::make_unique<Knowing>(known); };
  for (const std::uint32_t client : {0U, 1U, 2U})
    h.feed(RunEngine::Described{ClientId(client), {.latency_ms = 10.0 + client, .labels = {}}});
  const std::vector<Knowing::Latencies> in_round = {
      {{0, 10}, {2, 12}}, {{0, 10}, {1, 11}}, {{0, 10}, {1, 11}, {2, 5}}, {{0, 10}, {1, 11}, {2, 5}}};
  h.arrive({0});
  for (std::uint32_t round = 1; round <= 4; ++round) {
    CAPTURE(round);
    CHECK(known == in_round[round - 1]);
    // A description from a client that does not take part reaches the sampler when it does.
    if (round == 2) h.feed(RunEngine::Described{ClientId(2), {.latency_ms = 5, .labels = {}}});
    CHECK(known == in_round[round - 1]);
    h.deliver(0, round);
    h.feed(RunEngine::Committed{RoundNumber(round), TrackId(0)});
  }
}

TEST_CASE("turns: a track without anybody there has its turn, and its model stays") {
  Harness h = disagreeing();
  h.rules.first_round_clients = 1;
  h.rules.clients_per_round = 1;
  h.arrive({1});
  deliver_to(h, 1, 1, 0);
  h.feed(RunEngine::Committed{RoundNumber(1), TrackId(0)});
  REQUIRE(h.one<RunEngine::CloseRound>());
  CHECK(h.one<RunEngine::CloseRound>()->track == TrackId(1));
  CHECK(h.one<RunEngine::CloseRound>()->selected == 0);
  CHECK(h.one<RunEngine::CloseRound>()->ends_round);
}

TEST_CASE("turns: a policy that changes while a round goes on holds from the next round") {
  Harness h;
  h.arrive({0, 1, 2});
  aggregation::Policy policy = disagreeing().policy;
  h.feed(RunEngine::PolicyChanged{policy});
  CHECK(h.event("policy.changed"));
  for (const std::uint32_t client : {0U, 1U, 2U}) h.deliver(client, 1);
  CHECK(h.one<RunEngine::CloseRound>()->ends_round);
  h.feed(RunEngine::Committed{RoundNumber(1), TrackId(0)});
  REQUIRE(h.one<RunEngine::StartTrack>());
  CHECK(h.one<RunEngine::StartTrack>()->source == TrackId(0));
}

TEST_CASE("turns: an asynchronous run ends rather than pass over a disagreement") {
  Harness h;
  h.schedule = aggregation::ScheduleSpec{.buffered = true, .buffer_size = 2};
  h.arrive({0, 1, 2});
  h.feed(RunEngine::PolicyChanged{disagreeing().policy});
  REQUIRE(h.one<RunEngine::Finished>());
  CHECK(h.one<RunEngine::Finished>()->reason.find("disagree") != std::string::npos);
}

}  // namespace fedge::server
