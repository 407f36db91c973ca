#include "server/engine/serverless_warmup.h"

#include <doctest/doctest.h>

#include "tests/support/at.h"

namespace fedge::server {
namespace {

constexpr TaskId kTask{RoundNumber(3), TrackId(0)};
constexpr swarm::RoundWarmup::Seeds kSeeds{1, 2};

using fedge::test::at;
bool everybody_listens(ClientId) { return true; }

protocol::Manifest update_of(ClientId client, std::size_t chunks = 20) {
  protocol::Manifest update;
  update.layout[0] = static_cast<std::uint8_t>(client.value());
  update.chunk_size = 4096;
  update.payload_size = chunks * 4096;
  update.coverage = Coverage::all(chunks * 1024);
  update.chunks.resize(chunks);
  return update;
}

// A round of this many clients that waits for `enough` updates.
ServerlessRound round_of(std::uint32_t clients, std::size_t enough) {
  ServerlessRound round(kTask, enough);
  for (std::uint32_t i = 0; i < clients; ++i) round.join(ClientId(i));
  return round;
}

void offer(ServerlessRound& round, std::uint32_t client, std::size_t chunks = 20) {
  round.offer(ClientId(client), update_of(ClientId(client), chunks));
}

ServerlessWarmup warmup(double deadline = 100) {
  return {{.degree = 3, .relayed = true}, kTask, at(1000), seconds(deadline)};
}

bool begins(ServerlessWarmup& warmup, const ServerlessRound& round, double time) {
  return warmup.begin(round, everybody_listens, kSeeds, at(1000 + time));
}

}  // namespace

TEST_CASE("warm-up: it begins once nobody is waited for any more") {
  ServerlessRound round = round_of(8, 8);
  ServerlessWarmup all = warmup();
  for (std::uint32_t i = 0; i < 7; ++i) {
    offer(round, i);
    CHECK_FALSE(begins(all, round, 1));
  }
  SUBCASE("because all have offered") { offer(round, 7); }
  SUBCASE("because the last one has gone") { round.leave(ClientId(7)); }
  CHECK(begins(all, round, 2));
  CHECK_FALSE(begins(all, round, 2));
  REQUIRE(all.tracker() != nullptr);
  CHECK(all.tracker()->members().size() == round.owners().size());
  CHECK_FALSE(all.over());
}

TEST_CASE("warm-up: it begins with as many as the run asks for, though more were chosen") {
  ServerlessRound round = round_of(10, 6);
  for (std::uint32_t i = 0; i < 6; ++i) offer(round, i);
  ServerlessWarmup enough = warmup();
  CHECK(begins(enough, round, 1));
}

TEST_CASE("warm-up: half of the round's time is waited for updates, and then only until there are four") {
  ServerlessRound round = round_of(8, 8);
  offer(round, 0);
  offer(round, 1);
  offer(round, 2);
  ServerlessWarmup late = warmup();
  CHECK_FALSE(begins(late, round, 50));
  offer(round, 5);
  CHECK_FALSE(begins(late, round, 49.9));
  CHECK(begins(late, round, 50));
  REQUIRE(late.tracker() != nullptr);
  CHECK(late.tracker()->members().size() == 4);
}

TEST_CASE("warm-up: after three quarters of the round's time it does not begin, which is said") {
  ServerlessRound round = round_of(8, 8);
  offer(round, 0);
  ServerlessWarmup none = warmup();
  CHECK_FALSE(begins(none, round, 75));
  CHECK(none.over());
  CHECK(none.tracker() == nullptr);
  CHECK(none.message(RunId(1)).failure == "too few updates were offered in time");
  CHECK(to_string(none.report(at(1075))).find("failed_open=\"too few") != std::string::npos);
  CHECK(none.report(at(1075)).severity == Severity::kWarning);
}

TEST_CASE("warm-up: it is over in time, and says that nothing is hidden if it could not be carried out") {
  ServerlessRound round = round_of(8, 8);
  for (std::uint32_t i = 0; i < 8; ++i) offer(round, i);
  ServerlessWarmup stuck = warmup(8);
  REQUIRE(begins(stuck, round, 1));
  const auto silence = [](ClientId, const protocol::ObjectId&) -> const swarm::ChunkSet* { return nullptr; };
  CHECK(stuck.go_on(at(1001), silence, RunId(1)).empty());
  CHECK_FALSE(stuck.over());
  (void)stuck.go_on(at(1006), silence, RunId(1));
  CHECK(stuck.over());
  CHECK_FALSE(stuck.message(RunId(1)).failure.empty());
  CHECK(stuck.report(at(1006)).severity == Severity::kWarning);
}

TEST_CASE("warm-up: updates of different sizes, and too few of them, are exchanged freely") {
  ServerlessRound round = round_of(4, 4);
  for (std::uint32_t i = 0; i < 4; ++i) offer(round, i, i == 2 ? 21 : 20);
  ServerlessWarmup sizes = warmup();
  CHECK_FALSE(begins(sizes, round, 1));
  CHECK(sizes.over());
  CHECK(sizes.message(RunId(1)).failure ==
        "the updates have different sizes, which would reveal their owners");
  ServerlessRound two = round_of(2, 2);
  offer(two, 0);
  offer(two, 1);
  ServerlessWarmup few = warmup();
  CHECK_FALSE(begins(few, two, 1));
  CHECK(few.message(RunId(1)).failure.find("nodes must be 3") != std::string::npos);
}

TEST_CASE(
    "warm-up: after a restart it does not begin with the first who is back, but when all are, or half of the "
    "time has "
    "passed") {
  ServerlessRound round = round_of(6, 6);
  for (std::uint32_t i = 0; i < 6; ++i) offer(round, i);
  round.restart();
  ServerlessWarmup anew = warmup();
  CHECK_FALSE(begins(anew, round, 1));
  for (std::uint32_t i = 0; i < 5; ++i) {
    round.join(ClientId(i));
    CHECK_FALSE(begins(anew, round, 2));
  }
  SUBCASE("all are back") {
    round.join(ClientId(5));
    CHECK(begins(anew, round, 3));
    CHECK(anew.updates(round).size() == 6);
  }
  SUBCASE("one never comes") {
    CHECK(begins(anew, round, 50));
    CHECK(anew.tracker()->members().size() == 5);
    CHECK(anew.updates(round).size() == 5);
    CHECK(round.updates().size() == 6);
  }
}

TEST_CASE("warm-up: the same update of two clients is one, and one who has gone has none") {
  ServerlessRound round = round_of(5, 5);
  for (std::uint32_t i = 0; i < 4; ++i) offer(round, i);
  round.offer(ClientId(4), update_of(ClientId(3)));
  CHECK(round.owners().size() == 4);
  round.leave(ClientId(0));
  CHECK(round.owners().size() == 3);
  CHECK(round.updates().size() == 4);
  CHECK(round.gathered());
}

}  // namespace fedge::server
