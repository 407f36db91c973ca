// The engine's part in rounds with secure aggregation.
#include <doctest/doctest.h>

#include "server/store/input_codec.h"
#include "tests/unit/server/engine_harness.h"

namespace fedge::server {
namespace {

Harness masked() {
  Harness harness;
  harness.rules.masked = protocol::Codec::kMasked64;
  harness.rules.return_within = seconds(5);
  return harness;
}

protocol::UpdateOffer masked_offer(const Harness& harness, std::uint32_t round) {
  protocol::UpdateOffer offer = harness.offer(round, 1);
  offer.update.codec = protocol::Codec::kMasked64;
  offer.steps = 1;
  return offer;
}

void deliver(Harness& harness, std::uint32_t client, std::uint32_t round) {
  harness.feed(RunEngine::Offered{ClientId(client), masked_offer(harness, round)});
  REQUIRE(harness.one<RunEngine::Fetch>());
  harness.feed(RunEngine::Stored{ClientId(client), RoundNumber(round)});
  REQUIRE(harness.one<RunEngine::Fold>());
}

RunEngine::Failed failure(std::uint32_t client, std::uint32_t round) {
  return {ClientId(client), {kRun, RoundNumber(round), ErrorCode::kRefused, "left out", TrackId()}};
}

}  // namespace

TEST_CASE("round engine: who sums in secret is named before anybody is asked to train") {
  Harness h = masked();
  h.arrive({4, 7, 9});
  const auto begin = h.one<RunEngine::BeginSecure>();
  REQUIRE(begin);
  CHECK(begin->task == TaskId{RoundNumber(1), TrackId()});
  CHECK(begin->attempt == 1);
  REQUIRE(begin->members.size() == 3);
  CHECK(begin->members[1].client == ClientId(7));
  CHECK(begin->members[1].coverage == Coverage::all(kParameters));
  const auto assigned = h.all<RunEngine::Assign>();
  REQUIRE(assigned.size() == 3);
  for (const auto& work : assigned) CHECK(work.secure_attempt == 1);
  const auto at = [&](auto is) { return std::ranges::find_if(h.effects, is) - h.effects.begin(); };
  CHECK(at([](const auto& e) { return std::holds_alternative<RunEngine::BeginSecure>(e); }) <
        at([](const auto& e) { return std::holds_alternative<RunEngine::Assign>(e); }));
}

TEST_CASE("round engine: nobody takes the place of a member that vanishes, and it may come back") {
  Harness h = masked();
  h.arrive({4, 7, 9, 12, 15});
  const auto members = h.engine().round();
  CHECK(members == RoundNumber(1));
  h.feed(RunEngine::ClientLeft{ClientId(7)});
  CHECK(h.all<RunEngine::Assign>().empty());
  h.feed(RunEngine::ClientArrived{ClientId(7), SampleCount(1)});
  const auto again = h.one<RunEngine::Assign>();
  if (again) CHECK(again->secure_attempt == 1);
}

TEST_CASE("round engine: a member that has lost its part is waited for no more, even if it is away") {
  Harness h = masked();
  h.arrive({4, 7, 9});
  deliver(h, 4, 1);
  deliver(h, 9, 1);
  h.feed(RunEngine::ClientLeft{ClientId(7)});
  CHECK_FALSE(h.one<RunEngine::CloseRound>());  // the client may reconnect
  h.feed(failure(7, 1));
  const auto close = h.one<RunEngine::CloseRound>();
  REQUIRE(close);
  CHECK(close->completed == 2);
}

TEST_CASE("round engine: a masked update says nothing of itself, and comes in the run's words") {
  Harness h = masked();
  h.arrive({4, 7, 9});
  const auto refused = [&](auto change) {
    protocol::UpdateOffer offer = masked_offer(h, 1);
    change(offer);
    h.feed(RunEngine::Offered{ClientId(4), offer});
    const auto verdict = h.sent_to<protocol::UpdateVerdict>(4);
    REQUIRE(verdict);
    return verdict->reason;
  };
  SUBCASE("another codec") {
    CHECK(refused([](auto& offer) { offer.update.codec = protocol::Codec::kFloat32; }) ==
          "the update is not masked in the way that the run requires");
  }
  SUBCASE("the other ring") {
    CHECK(refused([](auto& offer) { offer.update.codec = protocol::Codec::kMasked32; }) ==
          "the update is not masked in the way that the run requires");
  }
  SUBCASE("its samples") {
    CHECK(refused([](auto& offer) { offer.samples = SampleCount(2); }).find("must state 1 sample") !=
          std::string::npos);
  }
  SUBCASE("beyond the model") {
    CHECK(refused([](auto& offer) {
            offer.update.coverage = Coverage::all(kParameters + 1);
          }).find("parameters that the model does not have") != std::string::npos);
  }
}

TEST_CASE("round engine: a coordinator that was gone begins the turn anew, with the same members") {
  Harness h = masked();
  h.arrive({4, 7, 9});
  deliver(h, 4, 1);
  h.feed(RunEngine::Offered{ClientId(7), masked_offer(h, 1)});
  h.feed(RunEngine::Restarted{});
  const auto dropped = h.all<RunEngine::Discard>();
  REQUIRE(dropped.size() == 2);
  CHECK_FALSE(h.one<RunEngine::BeginSecure>());
  h.arrive({9, 4});
  CHECK_FALSE(h.one<RunEngine::BeginSecure>());
  h.arrive({7});
  const auto begin = h.one<RunEngine::BeginSecure>();
  REQUIRE(begin);
  CHECK(begin->task == TaskId{RoundNumber(1), TrackId()});
  CHECK(begin->attempt == 2);
  CHECK(begin->members.size() == 3);
  for (const std::uint32_t client : {4U, 7U, 9U}) deliver(h, client, 1);
  CHECK(h.one<RunEngine::CloseRound>());
}

TEST_CASE("N5, journal records: what a turn has come to in secret is read back as it was") {
  SummedTurn turn{.offer = {.run = kRun,
                            .round = RoundNumber(3),
                            .update = {.layout = kLayout,
                                       .coverage = Coverage::of({{10, 600}}),
                                       .codec = protocol::Codec::kMasked64,
                                       .payload_size = 590 * 8,
                                       .chunk_size = 8192,
                                       .chunks = {Digest{3}}},
                            .samples = SampleCount(7),
                            .train_loss = 0.25,
                            .track = TrackId(2),
                            .masked_scalars = {500, 300}},
                  .cells = {{10, 20}, {20, 600}},
                  .clients = {ClientId(4), ClientId(9)}};
  const std::string bytes = encode_record(turn);
  const auto record = decode_record(bytes);
  REQUIRE(record);
  const auto& back = std::get<SummedTurn>(*record);
  CHECK(back.offer.update == turn.offer.update);
  CHECK(back.offer.masked_scalars == turn.offer.masked_scalars);
  CHECK(back.offer.train_loss == 0.25);
  CHECK(back.cells == turn.cells);
  CHECK(back.clients == turn.clients);
  turn.cells[1].end = 599;
  CHECK(decode_record(encode_record(turn)).error().code == ErrorCode::kCorrupt);
  turn.cells[1] = {19, 599};
  CHECK(decode_record(encode_record(turn)).error().code == ErrorCode::kCorrupt);
}

}  // namespace fedge::server
