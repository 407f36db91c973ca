#include "server/engine/round_engine.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "tests/unit/server/engine_harness.h"

using namespace fedge;
using namespace fedge::server;

static_assert(Node<RoundEngine>);

TEST_CASE("round: starts when enough clients are there, and each selected one gets the work") {
  Harness h;
  h.arrive({0, 1});
  CHECK(h.all<RoundEngine::Assign>().empty());
  CHECK(!h.engine().next_deadline());
  h.arrive({2});
  const auto work = h.all<RoundEngine::Assign>();
  REQUIRE(work.size() == 3);
  CHECK(work[0].task.round == RoundNumber(1));
  CHECK(work[0].coverage == Coverage::all(kParameters));
  CHECK(work[0].time_left == seconds(60));
  CHECK(h.engine().next_deadline() == Time(seconds(60)));
}

TEST_CASE("round: closes when all have answered, the training loss is weighted by samples") {
  Harness h;
  h.arrive({0, 1, 2});
  h.deliver(1, 1, 10);
  CHECK(h.sent_to<protocol::UpdateVerdict>(1)->accepted);
  h.deliver(0, 1, 20);
  CHECK(!h.one<RoundEngine::CloseRound>());
  h.deliver(2, 1, 50);
  const auto close = h.one<RoundEngine::CloseRound>();
  REQUIRE(close);
  CHECK(close->completed == 3);
  CHECK(close->train_loss == doctest::Approx((10 * 10 + 20 * 20 + 50 * 50) / 80.0));
}

TEST_CASE("round: the next one starts after the commit, and the run ends after the last") {
  Harness h;
  h.arrive({0, 1, 2});
  for (const std::uint32_t client : {0U, 1U, 2U}) h.deliver(client, 1);
  h.feed(RoundEngine::Committed{RoundNumber(1)});
  CHECK(h.all<RoundEngine::Assign>().size() == 3);
  for (const std::uint32_t client : {0U, 1U, 2U}) h.deliver(client, 2);
  h.feed(RoundEngine::Committed{RoundNumber(2)});
  CHECK(h.one<RoundEngine::Finished>());
  CHECK(h.sent_to<protocol::RunEnded>(0));
}

TEST_CASE("round: a lost client is replaced by one that has no work") {
  Harness h;
  h.rules.first_round_clients = 4;
  h.arrive({0, 1, 2, 3});
  std::vector<ClientId> selected;
  for (const auto& work : h.all<RoundEngine::Assign>()) selected.push_back(work.client);
  REQUIRE(selected.size() == 3);
  h.feed(RoundEngine::ClientLeft{selected[0]});
  const auto substitute = h.one<RoundEngine::Assign>();
  REQUIRE(substitute);
  CHECK(std::find(selected.begin(), selected.end(), substitute->client) == selected.end());
  REQUIRE(h.event("client.replaced"));
}

TEST_CASE(
    "round: without a substitute it waits for the deadline, closes with those who answered, and says so") {
  Harness h;
  h.arrive({0, 1, 2});
  h.deliver(0, 1);
  h.deliver(1, 1);
  h.feed(RoundEngine::ClientLeft{ClientId(2)});
  CHECK(!h.one<RoundEngine::CloseRound>());
  h.now = Time(seconds(59));
  h.feed(Expired{});
  CHECK(h.effects.empty());  // an early timer has no effect
  h.now = Time(seconds(60));
  h.feed(Expired{});
  REQUIRE(h.one<RoundEngine::CloseRound>());
  CHECK(h.one<RoundEngine::CloseRound>()->completed == 2);
  REQUIRE(h.event("round.closed"));
  CHECK(to_string(*h.event("round.closed")) ==
        "round.closed round=1 reason=\"deadline\" selected=3 completed=2");
  CHECK(h.event("round.closed")->severity == Severity::kWarning);
}

TEST_CASE("round: a client that comes back before the deadline is asked again and counts once") {
  Harness h;
  h.arrive({0, 1, 2});
  h.deliver(0, 1);
  h.deliver(1, 1);
  h.feed(RoundEngine::ClientLeft{ClientId(2)});
  h.arrive({2});
  REQUIRE(h.one<RoundEngine::Assign>());
  CHECK(h.one<RoundEngine::Assign>()->client == ClientId(2));
  h.deliver(2, 1);
  CHECK(h.one<RoundEngine::CloseRound>()->completed == 3);
}

TEST_CASE("round: a client that failed and then leaves frees no second slot and is not waited for") {
  Harness h;
  h.arrive({0, 1, 2});
  h.arrive({3, 4});
  h.feed(RoundEngine::Failed{ClientId(0), {kRun, RoundNumber(1), ErrorCode::kInvalid, "no data"}});
  CHECK(h.all<RoundEngine::Assign>().size() == 1);
  h.feed(RoundEngine::ClientLeft{ClientId(0)});
  CHECK(h.all<RoundEngine::Assign>().empty());
  for (const std::uint32_t client : {1U, 2U, 3U, 4U})
    h.feed(RoundEngine::Failed{ClientId(client), {kRun, RoundNumber(1), ErrorCode::kInvalid, "no data"}});
  REQUIRE(h.one<RoundEngine::CloseRound>());  // closes before the deadline
  CHECK(h.one<RoundEngine::CloseRound>()->completed == 0);
}

TEST_CASE("round: a newcomer fills a slot that is empty, not one that was filled already") {
  Harness h;
  h.arrive({0, 1, 2});
  h.feed(RoundEngine::ClientLeft{ClientId(0)});
  CHECK(h.all<RoundEngine::Assign>().empty());
  h.arrive({3});
  REQUIRE(h.one<RoundEngine::Assign>());
  CHECK(h.one<RoundEngine::Assign>()->client == ClientId(3));
  h.arrive({4});
  CHECK(h.all<RoundEngine::Assign>().empty());
  // The replaced client may still deliver its update.
  h.arrive({0});
  REQUIRE(h.one<RoundEngine::Assign>());
  CHECK(h.one<RoundEngine::Assign>()->client == ClientId(0));
}

TEST_CASE("round: over-selection asks more clients and cancels those not needed") {
  Harness h;
  h.rules.over_selection = 1.5;
  h.rules.first_round_clients = 5;
  h.arrive({0, 1, 2, 3, 4});
  CHECK(h.all<RoundEngine::Assign>().size() == 5);
  for (const std::uint32_t client : {4U, 2U, 0U}) h.deliver(client, 1);
  REQUIRE(h.one<RoundEngine::CloseRound>());
  CHECK(h.one<RoundEngine::CloseRound>()->selected == 5);
  CHECK(h.sent_to<protocol::CancelTask>(1));
  CHECK(h.sent_to<protocol::CancelTask>(3));
  CHECK(!h.sent_to<protocol::CancelTask>(4));
}

TEST_CASE("round: an update of an earlier round is refused as stale and the round goes on") {
  Harness h;
  h.arrive({0, 1, 2});
  for (const std::uint32_t client : {0U, 1U, 2U}) h.deliver(client, 1);
  h.feed(RoundEngine::Committed{RoundNumber(1)});
  h.feed(RoundEngine::Offered{ClientId(0), h.offer(1)});
  const auto verdict = h.sent_to<protocol::UpdateVerdict>(0);
  REQUIRE(verdict);
  CHECK(!verdict->accepted);
  CHECK(verdict->code == ErrorCode::kStale);
  CHECK(verdict->reason == "round 1 is closed; the current round is 2");
  CHECK(!h.one<RoundEngine::Fetch>());
  for (const std::uint32_t client : {0U, 1U, 2U}) h.deliver(client, 2);
}

TEST_CASE("round: a second update of one client in one round is refused") {
  Harness h;
  h.arrive({0, 1, 2});
  h.deliver(0, 1);
  h.feed(RoundEngine::Offered{ClientId(0), h.offer(1)});
  CHECK(h.sent_to<protocol::UpdateVerdict>(0)->code == ErrorCode::kRefused);
  CHECK(!h.one<RoundEngine::Fetch>());
}

TEST_CASE("N4, round: a second offer while the first is on its way is refused, and the first counts once") {
  Harness h;
  h.arrive({0, 1, 2});
  h.feed(RoundEngine::Offered{ClientId(0), h.offer(1, 60)});
  REQUIRE(h.one<RoundEngine::Fetch>());
  h.feed(RoundEngine::Offered{ClientId(0), h.offer(1, 900)});
  CHECK(h.sent_to<protocol::UpdateVerdict>(0)->code == ErrorCode::kRefused);
  CHECK(h.all<RoundEngine::Fetch>().empty());
  h.feed(RoundEngine::Stored{ClientId(0), RoundNumber(1)});
  REQUIRE(h.one<RoundEngine::Fold>());
  CHECK(h.one<RoundEngine::Fold>()->weight == SampleCount(60));
  h.feed(RoundEngine::Stored{ClientId(0), RoundNumber(1)});
  CHECK(h.all<RoundEngine::Fold>().empty());
}

TEST_CASE(
    "round: updates nobody asked for, of another run, layout, coverage or impossible weight are refused") {
  Harness h;
  h.rules.clients_per_round = 2;
  h.arrive({0, 1, 2});
  std::vector<std::uint32_t> selected;
  for (const auto& work : h.all<RoundEngine::Assign>()) selected.push_back(work.client.value());
  REQUIRE(selected.size() == 2);
  const std::uint32_t idle = 3 - selected[0] - selected[1];
  h.feed(RoundEngine::Offered{ClientId(idle), h.offer(1)});
  CHECK(h.sent_to<protocol::UpdateVerdict>(idle)->code == ErrorCode::kRefused);
  const auto refused = [&](protocol::UpdateOffer offer, ErrorCode code) {
    Harness fresh;
    fresh.arrive({0, 1, 2});
    fresh.feed(RoundEngine::Offered{ClientId(0), std::move(offer)});
    const auto verdict = fresh.sent_to<protocol::UpdateVerdict>(0);
    return verdict && !verdict->accepted && verdict->code == code && !fresh.one<RoundEngine::Fetch>();
  };
  auto other_run = h.offer(1);
  other_run.run = RunId(10);
  CHECK(refused(other_run, ErrorCode::kStale));
  CHECK(refused(h.offer(2), ErrorCode::kStale));
  auto layout = h.offer(1);
  layout.update.layout = sha256("another");
  CHECK(refused(layout, ErrorCode::kInvalid));
  auto chunks = h.offer(1);
  chunks.update.chunk_size = 4096;
  CHECK(refused(chunks, ErrorCode::kInvalid));
  auto compressed = h.offer(1);
  compressed.update.codec = protocol::Codec::kFloat16;
  CHECK(refused(compressed, ErrorCode::kInvalid));
  auto coverage = h.offer(1);
  coverage.update.coverage = Coverage::of({{0, 50}});
  CHECK(refused(coverage, ErrorCode::kInvalid));
  CHECK(refused(h.offer(1, 0), ErrorCode::kInvalid));
  CHECK(refused(h.offer(1, 1001), ErrorCode::kInvalid));
}

TEST_CASE(
    "round: a damaged update is refused by name, its sender loses the round, the others' round goes on") {
  Harness h;
  h.arrive({0, 1, 2});
  h.feed(RoundEngine::Offered{ClientId(0), h.offer(1)});
  h.feed(
      RoundEngine::Damaged{ClientId(0), {RoundNumber(1), {}}, {ErrorCode::kCorrupt, "chunk 3: wrong hash"}});
  const auto verdict = h.sent_to<protocol::UpdateVerdict>(0);
  REQUIRE(verdict);
  CHECK(verdict->code == ErrorCode::kCorrupt);
  CHECK(verdict->reason == "chunk 3: wrong hash");
  h.deliver(1, 1);
  h.deliver(2, 1);
  REQUIRE(h.one<RoundEngine::CloseRound>());
  CHECK(h.one<RoundEngine::CloseRound>()->completed == 2);
}

TEST_CASE("round: an upload that a closed round cut short is discarded, a late one too") {
  Harness h;
  h.arrive({0, 1, 2});
  h.feed(RoundEngine::Offered{ClientId(0), h.offer(1)});
  h.now = Time(seconds(60));
  h.feed(Expired{});
  REQUIRE(h.one<RoundEngine::Discard>());
  CHECK(h.one<RoundEngine::CloseRound>()->completed == 0);
  h.feed(RoundEngine::Stored{ClientId(0), RoundNumber(1)});
  CHECK(h.one<RoundEngine::Discard>());
  CHECK(!h.one<RoundEngine::Fold>());
}

TEST_CASE("round: what arrived of an update before its link was lost is kept until the round closes") {
  Harness h;
  h.arrive({0, 1, 2});
  h.feed(RoundEngine::Offered{ClientId(0), h.offer(1)});
  h.feed(RoundEngine::ClientLeft{ClientId(0)});
  CHECK(!h.one<RoundEngine::Discard>());
  h.feed(RoundEngine::ClientArrived{ClientId(0)});
  REQUIRE(h.one<RoundEngine::Assign>());
  SUBCASE("and fetched on when it is offered again") {
    h.feed(RoundEngine::Offered{ClientId(0), h.offer(1)});
    CHECK(h.one<RoundEngine::Fetch>());
    h.feed(RoundEngine::Stored{ClientId(0), RoundNumber(1)});
    CHECK(h.one<RoundEngine::Fold>());
    CHECK(!h.one<RoundEngine::Discard>());
    return;
  }
  SUBCASE("the client fails the task") {
    h.feed(RoundEngine::Failed{ClientId(0), {kRun, RoundNumber(1), ErrorCode::kResource, "disk full"}});
  }
  SUBCASE("the round closes while it is away again") {
    h.feed(RoundEngine::ClientLeft{ClientId(0)});
    h.now = Time(seconds(60));
    h.feed(Expired{});
  }
  SUBCASE("the round closes while it has the task in hand") {
    h.now = Time(seconds(60));
    h.feed(Expired{});
  }
  REQUIRE(h.one<RoundEngine::Discard>());
  CHECK(h.one<RoundEngine::Discard>()->client == ClientId(0));
}

TEST_CASE("round: clients that all fail end the round at once instead of at the deadline") {
  Harness h;
  h.arrive({0, 1, 2});
  for (const std::uint32_t client : {0U, 1U, 2U})
    h.feed(RoundEngine::Failed{ClientId(client), {kRun, RoundNumber(1), ErrorCode::kNotFound, "no data"}});
  CHECK(h.one<RoundEngine::CloseRound>()->completed == 0);
}

TEST_CASE("round: stopping tells every client and frees what was being fetched") {
  Harness h;
  h.arrive({0, 1, 2});
  h.feed(RoundEngine::Offered{ClientId(1), h.offer(1)});
  h.feed(RoundEngine::Stop{"told to"});
  CHECK(!h.all<RoundEngine::Discard>().empty());
  CHECK(h.sent_to<protocol::RunEnded>(0)->reason == "told to");
  CHECK(h.one<RoundEngine::Finished>());
}

TEST_CASE("round: the same inputs in the same order select the same clients") {
  const auto selection = [] {
    Harness h;
    h.rules.first_round_clients = 50;
    h.rules.clients_per_round = 10;
    for (std::uint32_t client = 0; client < 50; ++client)
      h.feed(RoundEngine::ClientArrived{ClientId(client), SampleCount(60)});
    std::vector<ClientId> clients;
    for (const auto& work : h.all<RoundEngine::Assign>()) clients.push_back(work.client);
    return clients;
  };
  CHECK(selection().size() == 10);
  CHECK(selection() == selection());
}

namespace {

// A sampler that draws with the probabilities of the test.
class Drawing final : public aggregation::Sampler {
 public:
  Drawing(std::vector<double> probabilities, bool unbiased, aggregation::Draw draw)
      : probabilities_(std::move(probabilities)), unbiased_(unbiased), draw_(draw) {}
  std::vector<aggregation::Selected> select(const aggregation::SelectionRequest& request) override {
    return everybody_.select(request);
  }
  aggregation::SamplerTraits traits() const override { return {.draw = draw_, .unbiased = unbiased_}; }
  std::vector<double> probabilities(std::span<const aggregation::Participant> participants) override {
    asked.assign(participants.begin(), participants.end());
    return probabilities_;
  }
  void remember(const aggregation::Feedback& feedback) override {
    if (feedback.delivered) remembered.emplace_back(feedback.client, feedback.norm);
  }

  inline static std::vector<aggregation::Participant> asked;
  inline static std::vector<std::pair<ClientId, double>> remembered;

 private:
  std::vector<double> probabilities_;
  bool unbiased_;
  aggregation::Draw draw_;
  aggregation::UniformSampler everybody_;
};

Harness drawing(const std::vector<double>& probabilities, bool unbiased,
                aggregation::Draw draw = aggregation::Draw::kBeforeUpload) {
  Harness h;
  Drawing::remembered.clear();
  h.sampler = [=] { return std::make_unique<Drawing>(probabilities, unbiased, draw); };
  return h;
}

}  // namespace

TEST_CASE("drawing: all train and say how large their updates are, then it is drawn who uploads") {
  Harness h = drawing({1.0, 1e-9, 1.0}, true);
  h.arrive({0, 1, 2});
  for (const std::uint32_t client : {0U, 1U, 2U}) {
    protocol::UpdateOffer offer = h.offer(1, 10 + client);
    offer.norm = client;
    h.feed(RoundEngine::Offered{ClientId(client), offer});
    if (client < 2) CHECK(h.all<RoundEngine::Fetch>().empty());
  }
  REQUIRE(Drawing::asked.size() == 3);
  CHECK(Drawing::asked[2].norm == 2);
  CHECK(Drawing::asked[2].samples == SampleCount(12));
  CHECK(Drawing::asked[2].share == 1);
  CHECK(h.all<RoundEngine::Fetch>().size() == 2);
  CHECK(h.sent_to<protocol::CancelTask>(1));
  // A client that was not drawn counts as zeros in the mean.
  REQUIRE(h.one<RoundEngine::Count>());
  CHECK(h.one<RoundEngine::Count>()->client == ClientId(1));
  CHECK(h.one<RoundEngine::Count>()->weight == SampleCount(11));
  h.feed(RoundEngine::Stored{ClientId(0), RoundNumber(1)});
  CHECK(h.one<RoundEngine::Fold>()->factor == 1.0);
  CHECK_FALSE(h.one<RoundEngine::CloseRound>());
  h.feed(RoundEngine::Stored{ClientId(2), RoundNumber(1)});
  REQUIRE(h.one<RoundEngine::CloseRound>());
  CHECK(h.one<RoundEngine::CloseRound>()->completed == 2);
}

TEST_CASE("drawing: an upload counts 1 / p, and without the estimator once") {
  for (const bool unbiased : {true, false}) {
    Harness h = drawing({0.9999, 0.9999, 0.9999}, unbiased);
    h.arrive({0, 1, 2});
    for (const std::uint32_t client : {0U, 1U, 2U})
      h.feed(RoundEngine::Offered{ClientId(client), h.offer(1)});
    h.feed(RoundEngine::Stored{ClientId(0), RoundNumber(1)});
    REQUIRE(h.one<RoundEngine::Fold>());
    CHECK(h.one<RoundEngine::Fold>()->factor == (unbiased ? 1 / 0.9999 : 1.0));
  }
}

TEST_CASE("drawing: a client lost after the draw keeps its place in the mean, and nobody takes it over") {
  Harness h = drawing({1, 1, 1}, true);
  h.arrive({0, 1, 2, 3});
  for (const std::uint32_t client : {0U, 1U, 2U, 3U})
    h.feed(RoundEngine::Offered{ClientId(client), h.offer(1)});
  const ClientId lost = Drawing::asked[0].client;
  h.feed(RoundEngine::ClientLeft{lost});
  CHECK(h.one<RoundEngine::Count>());
  CHECK_FALSE(h.one<RoundEngine::Assign>());
  // The lost client already counts as zeros: it gets no new task, and the round does not wait for it.
  h.feed(RoundEngine::ClientArrived{lost, SampleCount(60)});
  CHECK_FALSE(h.one<RoundEngine::Assign>());
  h.feed(RoundEngine::Stored{Drawing::asked[1].client, RoundNumber(1)});
  h.feed(RoundEngine::Stored{Drawing::asked[2].client, RoundNumber(1)});
  CHECK(h.one<RoundEngine::CloseRound>());
}

TEST_CASE("drawing: before training, only those drawn are asked, and the others count as zeros") {
  Harness h = drawing({0.9999, 1e-9, 0.9999}, true, aggregation::Draw::kBeforeTraining);
  h.arrive({0, 1, 2});
  REQUIRE(Drawing::asked.size() == 3);
  CHECK(Drawing::asked[1].samples == SampleCount(60));
  CHECK(h.all<RoundEngine::Assign>().size() == 2);
  CHECK_FALSE(h.sent_to<protocol::CancelTask>(1));
  REQUIRE(h.one<RoundEngine::Count>());
  CHECK(h.one<RoundEngine::Count>()->client == ClientId(1));
  CHECK(h.one<RoundEngine::Count>()->weight == SampleCount(60));
  // No client takes a free place: neither one that was not drawn nor a newcomer.
  h.arrive({3});
  CHECK_FALSE(h.one<RoundEngine::Assign>());
  protocol::UpdateOffer offer = h.offer(1);
  offer.norm = 2.5;
  h.feed(RoundEngine::Offered{ClientId(0), offer});
  REQUIRE(h.one<RoundEngine::Fetch>());
  h.feed(RoundEngine::Stored{ClientId(0), RoundNumber(1)});
  CHECK(h.one<RoundEngine::Fold>()->factor == 1 / 0.9999);
  const std::vector<std::pair<ClientId, double>> learnt = {{ClientId(0), 2.5}};
  CHECK(Drawing::remembered == learnt);
  // The other drawn client is lost: it counts as zeros, and the round closes.
  h.feed(RoundEngine::ClientLeft{ClientId(2)});
  CHECK(h.one<RoundEngine::Count>()->client == ClientId(2));
  REQUIRE(h.one<RoundEngine::CloseRound>());
  CHECK(h.one<RoundEngine::CloseRound>()->completed == 1);
}

TEST_CASE("drawing: a round in which nobody is drawn closes at once") {
  Harness h = drawing({1e-9, 1e-9, 1e-9}, true, aggregation::Draw::kBeforeTraining);
  h.arrive({0, 1, 2});
  CHECK(h.all<RoundEngine::Count>().size() == 3);
  REQUIRE(h.one<RoundEngine::CloseRound>());
  CHECK(h.one<RoundEngine::CloseRound>()->completed == 0);
}

TEST_CASE("drawing: a client lost before the draw does not make the round last until its deadline") {
  Harness h = drawing({1, 1}, true);
  h.arrive({0, 1, 2});
  h.feed(RoundEngine::Offered{ClientId(0), h.offer(1)});
  h.feed(RoundEngine::ClientLeft{ClientId(2)});  // no client can replace it
  h.feed(RoundEngine::Offered{ClientId(1), h.offer(1)});
  REQUIRE(Drawing::asked.size() == 2);
  h.feed(RoundEngine::Stored{ClientId(0), RoundNumber(1)});
  h.feed(RoundEngine::Stored{ClientId(1), RoundNumber(1)});
  REQUIRE(h.one<RoundEngine::CloseRound>());
  CHECK(h.one<RoundEngine::CloseRound>()->completed == 2);
}

TEST_CASE("drawing: who is late at the deadline counts as zeros, as who was lost does") {
  for (const bool unbiased : {true, false}) {
    Harness h = drawing({1, 1, 1}, unbiased);
    h.arrive({0, 1, 2});
    for (const std::uint32_t client : {0U, 1U, 2U})
      h.feed(RoundEngine::Offered{ClientId(client), h.offer(1, 20 + client)});
    h.feed(RoundEngine::Stored{ClientId(0), RoundNumber(1)});
    h.now = *h.engine().next_deadline();
    h.feed(Expired{});
    REQUIRE(h.one<RoundEngine::CloseRound>());
    const auto counted = h.all<RoundEngine::Count>();
    CHECK(counted.size() == (unbiased ? 2 : 0));
    if (unbiased) CHECK(counted[1].weight == SampleCount(22));
  }
}

TEST_CASE("drawing: all that are drawn are waited for, however many were selected") {
  Harness h;
  h.rules.over_selection = 2;
  h.rules.first_round_clients = 6;
  h.sampler = [] {
    return std::make_unique<Drawing>(std::vector<double>(6, 0.9999), true,
                                     aggregation::Draw::kBeforeTraining);
  };
  h.arrive({0, 1, 2, 3, 4, 5});
  REQUIRE(h.all<RoundEngine::Assign>().size() == 6);
  for (const std::uint32_t client : {0U, 1U, 2U, 3U, 4U}) {
    h.deliver(client, 1);
    CHECK_FALSE(h.one<RoundEngine::CloseRound>());
  }
  h.deliver(5, 1);
  CHECK(h.one<RoundEngine::CloseRound>()->completed == 6);
}

TEST_CASE("round: a client that comes and goes draws one more client into the round, not one each time") {
  Harness h;
  h.arrive({0, 1, 2});
  h.arrive({3, 4, 5, 6});
  std::size_t assigned = 3;
  for (int times = 0; times < 5; ++times) {
    h.feed(RunEngine::ClientLeft{ClientId(0)});
    assigned += h.all<RunEngine::Assign>().size();
    h.feed(RunEngine::ClientArrived{ClientId(0), SampleCount(60)});
    for (const auto& work : h.all<RunEngine::Assign>()) CHECK(work.client == ClientId(0));
  }
  CHECK(assigned == 4);
}

TEST_CASE("round: no more steps are believed than the samples make batches") {
  Harness h;
  h.rules.local_epochs = 2;
  h.rules.batch_size = 20;
  h.arrive({0, 1, 2});
  protocol::UpdateOffer offer = h.offer(1, 41);  // 3 batches
  offer.steps = 7;
  h.feed(RunEngine::Offered{ClientId(0), offer});
  REQUIRE(h.sent_to<protocol::UpdateVerdict>(0));
  CHECK(h.sent_to<protocol::UpdateVerdict>(0)->reason ==
        "the update claims 7 steps over 41 samples; expected 1 to 6");
  offer.steps = 6;
  h.feed(RunEngine::Offered{ClientId(1), offer});
  CHECK(h.one<RunEngine::Fetch>());
}

namespace {

// A sampler that selects all clients with the coefficients of the test.
class Weighing final : public aggregation::Sampler {
 public:
  explicit Weighing(std::vector<double> coefficients) : coefficients_(std::move(coefficients)) {}
  aggregation::SamplerTraits traits() const override { return {.substitutes = false, .weighs = true}; }
  std::vector<aggregation::Selected> select(const aggregation::SelectionRequest& request) override {
    std::vector<aggregation::Selected> all;
    if (coefficients_.empty()) return all;
    for (const auto& candidate : request.candidates)
      all.push_back({.client = candidate.client, .coefficient = coefficients_.at(all.size())});
    return all;
  }

 private:
  std::vector<double> coefficients_;
};

Harness weighing(const std::vector<double>& coefficients, bool uniform) {
  Harness h;
  h.rules.clients_per_round = 1;
  h.rules.uniform_weights = uniform;
  h.sampler = [=] { return std::make_unique<Weighing>(coefficients); };
  return h;
}

// The mean of a round of three clients if only this client's update is one and the others are zero.
double part_of_mean(const RoundEngine::Fold& fold, double all_weights) {
  return fold.factor * static_cast<double>(fold.weight.value()) / all_weights;
}

}  // namespace

TEST_CASE("coefficients: an update moves the mean by its coefficient, and all selected are waited for") {
  Harness h = weighing({0.5, 0.25, 0.125}, false);
  h.feed(RoundEngine::ClientArrived{ClientId(0), SampleCount(10)});
  h.feed(RoundEngine::ClientArrived{ClientId(1), SampleCount(20)});
  h.feed(RoundEngine::ClientArrived{ClientId(2), SampleCount(30)});
  const std::vector<double> expected = {0.5, 0.25};
  for (const std::uint32_t client : {0U, 1U}) {
    // The samples that it claims in the offer do not change its weight.
    h.feed(RoundEngine::Offered{ClientId(client), h.offer(1, 7)});
    h.feed(RoundEngine::Stored{ClientId(client), RoundNumber(1)});
    CHECK_FALSE(h.one<RoundEngine::CloseRound>());
    REQUIRE(h.one<RoundEngine::Fold>());
    CHECK(part_of_mean(*h.one<RoundEngine::Fold>(), 60) == doctest::Approx(expected[client]));
  }
  // The third drops out: its weight stays in the mean, with an update of zeros.
  h.feed(RoundEngine::ClientLeft{ClientId(2)});
  REQUIRE(h.one<RoundEngine::Count>());
  CHECK(h.one<RoundEngine::Count>()->weight == SampleCount(30));
  CHECK(h.one<RoundEngine::CloseRound>());
}

TEST_CASE("coefficients: where the aggregator weighs all alike, they are taken against that") {
  Harness h = weighing({0.5, 0.25, 0.125}, true);
  h.feed(RoundEngine::ClientArrived{ClientId(0), SampleCount(10)});
  h.feed(RoundEngine::ClientArrived{ClientId(1), SampleCount(20)});
  h.feed(RoundEngine::ClientArrived{ClientId(2), SampleCount(30)});
  h.feed(RoundEngine::Offered{ClientId(1), h.offer(1, 20)});
  h.feed(RoundEngine::Stored{ClientId(1), RoundNumber(1)});
  REQUIRE(h.one<RoundEngine::Fold>());
  CHECK(h.one<RoundEngine::Fold>()->factor == doctest::Approx(0.75));
}

TEST_CASE("a round that nobody is selected for closes at once, without work") {
  Harness h = weighing({}, false);
  h.arrive({0, 1, 2});
  REQUIRE(h.one<RoundEngine::CloseRound>());
  CHECK(h.one<RoundEngine::CloseRound>()->selected == 0);
  CHECK(h.all<RoundEngine::Assign>().empty());
}
