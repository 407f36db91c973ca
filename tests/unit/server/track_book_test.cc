#include "server/engine/track_book.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "aggregation/samplers/uniform.h"
#include "core/config/document.h"
#include "tests/unit/server/engine_harness.h"

namespace fedge::server {
namespace {

using Ids = std::vector<std::uint32_t>;

aggregation::Policy policy(const std::string& text) {
  const auto document = config::parse_toml(text, "policy.toml");
  REQUIRE(document);
  const auto read = aggregation::read_policy(*document);
  REQUIRE_MESSAGE(read, read.error().message);
  return *read;
}

// Returns one disagreement of a policy file.
std::string disagreement(const std::string& kind, const std::string& client, const std::string& against,
                         const std::string& more = "") {
  return "[[disagreement]]\nkind = \"" + kind + "\"\nclients = [\"" + client + "\"]\n" +
         (against.empty() ? "" : "against = [\"" + against + "\"]\n") + more + "\n";
}

TrackBook book(const std::string& text, std::uint32_t lifting_rounds = 0) {
  const aggregation::SamplerFactory sampler = [] { return std::make_unique<aggregation::UniformSampler>(); };
  return TrackBook(policy(text), [sampler] { return Harness::deciders(sampler); }, {lifting_rounds});
}

Ids pattern(const TrackBook& tracks, std::size_t turn) {
  Ids ids;
  for (const ClientId client : tracks.turn(turn).pattern) ids.push_back(client.value());
  return ids;
}

std::vector<Ids> patterns(const TrackBook& tracks) {
  std::vector<Ids> all;
  for (std::size_t i = 0; i < tracks.turns(); ++i) all.push_back(pattern(tracks, i));
  return all;
}

// Every member trains and delivers in this round.
TrackBook::Changes play(TrackBook& tracks, std::uint32_t round, std::uint32_t clients = 6) {
  TrackBook::Changes changes = tracks.begin_round(RoundNumber(round));
  for (std::size_t turn = 0; turn < tracks.turns(); ++turn)
    for (std::uint32_t client = 0; client < clients; ++client)
      if (tracks.is_member(turn, ClientId(client))) {
        CHECK(tracks.may_receive(turn, ClientId(client)));
        tracks.contributed(turn, ClientId(client));
      }
  return changes;
}

std::size_t turn_of(const TrackBook& tracks, const Ids& wanted) {
  const auto all = patterns(tracks);
  const auto place = std::find(all.begin(), all.end(), wanted);
  REQUIRE(place != all.end());
  return static_cast<std::size_t>(place - all.begin());
}

}  // namespace

TEST_CASE("without disagreements there is one track for all, round after round") {
  TrackBook tracks = book("clients = 6\n");
  for (std::uint32_t round = 1; round <= 3; ++round) {
    const auto changes = play(tracks, round);
    CHECK(changes.started.empty());
    CHECK(changes.retired.empty());
    REQUIRE(tracks.turns() == 1);
    CHECK(tracks.turn(0).id == TrackId());
    CHECK(tracks.turn(0).description == nullptr);
  }
}

TEST_CASE("in the first round every track begins as the model that nobody has touched") {
  TrackBook tracks = book("clients = 6\n" + disagreement("inbound", "0", "1"));
  const auto changes = tracks.begin_round(RoundNumber(1));
  CHECK(patterns(tracks) == std::vector<Ids>{{}, {1}});
  REQUIRE(changes.started.size() == 1);
  CHECK(changes.started[0].track == TrackId(1));
  CHECK(changes.started[0].source == TrackId(0));  // still the initial model
  CHECK(changes.retired.empty());
  for (std::uint32_t client = 0; client < 6; ++client) {
    CHECK(tracks.is_member(0, ClientId(client)));
    CHECK(tracks.is_member(1, ClientId(client)) == (client != 1));
  }
  CHECK(tracks.turn(1).description->exclude == std::vector<std::string>{"1"});
  CHECK(tracks.turn(1).description->owners == std::vector<std::string>{"0"});
  CHECK(tracks.turn(1).description->members == 5);
}

TEST_CASE("a track that nobody owns is none: with a disagreement each, the common one ends at once") {
  std::string text = "clients = 6\n";
  for (std::uint32_t c = 0; c < 6; ++c)
    text += disagreement("inbound", std::to_string(c), std::to_string((c + 1) % 6));
  TrackBook tracks = book(text);
  const auto changes = play(tracks, 1);
  CHECK(tracks.turns() == 6);
  CHECK(changes.started.size() == 6);
  CHECK(changes.retired == std::vector<TrackId>{TrackId(0)});
}

TEST_CASE("a temporary disagreement: its track goes on while it lasts, then there is one for all again") {
  TrackBook tracks = book("clients = 6\n" + disagreement("inbound", "0", "1", "until_round = 3\n"));
  CHECK(play(tracks, 1).started.size() == 1);
  for (std::uint32_t round = 2; round <= 3; ++round) {
    const auto changes = play(tracks, round);
    CHECK(changes.started.empty());
    CHECK(tracks.turns() == 2);
  }
  const auto changes = play(tracks, 4);
  CHECK(changes.started.empty());
  CHECK(changes.retired == std::vector<TrackId>{TrackId(1)});
  CHECK(patterns(tracks) == std::vector<Ids>{{}});
}

TEST_CASE("scenario 6: two disagreements end at different times, and the tracks follow") {
  // E(0)={1,2}, E(1)={3,4}, E(2)={5}, E(3)={0}, E(4)={2}, E(5)={1}, one of each list temporary.
  const std::string until2 = "until_round = 2\n";
  const std::string until4 = "until_round = 4\n";
  TrackBook tracks =
      book("clients = 6\n" + disagreement("inbound", "0", "1") + disagreement("inbound", "0", "2", until4) +
           disagreement("inbound", "1", "3", until4) + disagreement("inbound", "1", "4", until2) +
           disagreement("inbound", "2", "5", until4) + disagreement("inbound", "3", "0") +
           disagreement("inbound", "4", "2", until2) + disagreement("inbound", "5", "1"));
  const std::vector<Ids> at_first = {{0}, {1}, {1, 2}, {2}, {3, 4}, {5}};
  const std::vector<Ids> then = {{}, {0}, {1}, {1, 2}, {3}, {5}};
  const std::vector<Ids> at_last = {{}, {0}, {1}};
  for (std::uint32_t round = 1; round <= 5; ++round) {
    play(tracks, round);
    CHECK(patterns(tracks) == (round <= 2 ? at_first : round <= 4 ? then : at_last));
  }
}

TEST_CASE("shallow: a track that begins later goes on from the model that its owners had") {
  TrackBook tracks = book("clients = 6\n" + disagreement("inbound", "0", "1", "from_round = 3\n"));
  play(tracks, 1);
  play(tracks, 2);
  const auto changes = play(tracks, 3);
  REQUIRE(changes.started.size() == 1);
  CHECK(changes.started[0].source == TrackId(0));
  CHECK(tracks.is_clean(1, ClientId(0)));
}

TEST_CASE("deep: a track that begins later begins anew, for everything else has been touched") {
  TrackBook tracks =
      book("clients = 6\n" + disagreement("inbound", "0", "1", "from_round = 3\ndeep = true\n"));
  play(tracks, 1);
  play(tracks, 2);
  const auto changes = play(tracks, 3);
  REQUIRE(changes.started.size() == 1);
  CHECK_FALSE(changes.started[0].source);
}

TEST_CASE("deep: who asks late shares a track that has been clean all along") {
  // Client 5 has excluded client 1 since the first round; client 0 requests the same later.
  TrackBook tracks = book("clients = 6\n" + disagreement("inbound", "5", "1") +
                          disagreement("inbound", "0", "1", "from_round = 3\ndeep = true\n"));
  play(tracks, 1);
  play(tracks, 2);
  const auto changes = play(tracks, 3);
  CHECK(changes.started.empty());  // it shares the track of client 5
  CHECK(tracks.turn(turn_of(tracks, {1})).description->owners == std::vector<std::string>{"0", "5"});
}

TEST_CASE("deep: who joins a track that is not clean enough makes it begin anew, for all its owners") {
  TrackBook tracks = book("clients = 6\n" + disagreement("inbound", "5", "1", "from_round = 2\n") +
                          disagreement("inbound", "0", "1", "from_round = 4\ndeep = true\n"));
  play(tracks, 1);
  play(tracks, 2);
  play(tracks, 3);
  const TrackId shallow = tracks.turn(turn_of(tracks, {1})).id;
  const auto changes = play(tracks, 4);
  REQUIRE(changes.started.size() == 1);
  CHECK_FALSE(changes.started[0].source);
  CHECK(changes.started[0].track != shallow);
  CHECK(changes.retired == std::vector<TrackId>{shallow});
}

TEST_CASE(
    "source: the model that the owners had is gone on from, though another has been trained for longer") {
  // Client 0 starts from scratch in round 3. In round 5 it drops the exclusion of client 1 and excludes
  // client 2.
  TrackBook tracks = book(
      "clients = 6\n" + disagreement("inbound", "0", "1", "from_round = 3\nuntil_round = 4\ndeep = true\n") +
      disagreement("inbound", "0", "2", "from_round = 5\n"));
  for (std::uint32_t round = 1; round <= 4; ++round) play(tracks, round);
  const TrackId its_own = tracks.turn(turn_of(tracks, {1})).id;
  CHECK(tracks.turn(turn_of(tracks, {1})).age == 1);
  CHECK(tracks.turn(turn_of(tracks, {})).age == 3);
  const auto changes = play(tracks, 5);
  REQUIRE(changes.started.size() == 1);
  CHECK(changes.started[0].source == its_own);
  CHECK(changes.retired == std::vector<TrackId>{its_own});
}

// Client 0 shares the common model until round 5. It then excludes every model that client 7 ever took part
// in, including its former one.
const std::string kLeaves = disagreement("inbound", "0", "7", "from_round = 5\ndeep = true\n") +
                            disagreement("inbound", "0", "2", "from_round = 5\n");

TEST_CASE("source: of the others that are permitted, the one with the most rounds of training") {
  // Two models without client 7: one from round 1 on, and one that started from scratch in round 3.
  TrackBook tracks =
      book("clients = 8\n" + kLeaves + disagreement("inbound", "3", "7") + disagreement("inbound", "4", "7") +
           disagreement("inbound", "4", "6", "from_round = 3\ndeep = true\n"));
  for (std::uint32_t round = 1; round <= 4; ++round) play(tracks, round, 8);
  CHECK(patterns(tracks) == std::vector<Ids>{{}, {6, 7}, {7}});
  const TrackId older = tracks.turn(2).id;
  const auto changes = play(tracks, 5, 8);
  REQUIRE(changes.started.size() == 1);
  CHECK(changes.started[0].source == older);
}

TEST_CASE("source: a model that began as another has that one's rounds of training, too") {
  // Clients 3 and 4 leave the same model: client 3 in round 2 for the initial model, client 4 in round 3 with
  // the trained model.
  TrackBook tracks =
      book("clients = 8\n" + kLeaves + disagreement("inbound", "3", "7") + disagreement("inbound", "4", "7") +
           disagreement("inbound", "3", "5", "from_round = 2\ndeep = true\n") +
           disagreement("inbound", "4", "6", "from_round = 3\n"));
  for (std::uint32_t round = 1; round <= 4; ++round) play(tracks, round, 8);
  CHECK(patterns(tracks) == std::vector<Ids>{{}, {5, 7}, {6, 7}});
  const TrackId inherited = tracks.turn(2).id;
  const auto changes = play(tracks, 5, 8);
  REQUIRE(changes.started.size() == 1);
  CHECK(changes.started[0].source == inherited);
  CHECK(tracks.turn(turn_of(tracks, {2, 7})).age == 4);
}

TEST_CASE("source: of those with as many rounds of training, the one that has been there for longer") {
  // Client 4 leaves the model of client 3 in round 3; its own model continues from there.
  TrackBook tracks =
      book("clients = 8\n" + kLeaves + disagreement("inbound", "3", "7") + disagreement("inbound", "4", "7") +
           disagreement("inbound", "4", "6", "from_round = 3\n"));
  for (std::uint32_t round = 1; round <= 4; ++round) play(tracks, round, 8);
  CHECK(patterns(tracks) == std::vector<Ids>{{}, {6, 7}, {7}});
  CHECK(tracks.turn(1).age == tracks.turn(2).age);
  const TrackId first = tracks.turn(2).id;
  CHECK(first < tracks.turn(1).id);
  const auto changes = play(tracks, 5, 8);
  REQUIRE(changes.started.size() == 1);
  CHECK(changes.started[0].source == first);
}

TEST_CASE("strict: every exclusion is deep, and nobody is sent a model that it excludes a part of") {
  TrackBook tracks =
      book("clients = 6\nstrict = true\n" + disagreement("inbound", "0", "1", "from_round = 2\n"));
  play(tracks, 1);
  const auto changes = play(tracks, 2);
  REQUIRE(changes.started.size() == 1);
  CHECK_FALSE(changes.started[0].source);
  CHECK_FALSE(tracks.is_member(0, ClientId(0)));  // not even as a trainer for the others
  CHECK_FALSE(tracks.may_receive(0, ClientId(0)));
  CHECK(tracks.may_receive(1, ClientId(0)));
}

TEST_CASE("strict: a member in the background is not sent a model with a part of whom it excludes") {
  // Client 0 trains the model of client 5, which also excludes client 1. Client 1 must never take part in
  // this model. The check before the model is sent must not rely on that.
  const std::string both = disagreement("inbound", "0", "1") + disagreement("inbound", "5", "1") +
                           disagreement("inbound", "5", "2");
  for (const bool strict : {false, true}) {
    TrackBook tracks = book(std::string("clients = 6\nstrict = ") + (strict ? "true\n" : "false\n") + both);
    tracks.begin_round(RoundNumber(1));
    const std::size_t turn = turn_of(tracks, {1, 2});
    CHECK(tracks.is_member(turn, ClientId(0)));
    CHECK(tracks.may_receive(turn, ClientId(0)));
    tracks.contributed(turn, ClientId(1));
    CHECK(tracks.may_receive(turn, ClientId(0)) == !strict);
    CHECK(tracks.may_receive(turn, ClientId(3)));        // client 3 excludes no client
    CHECK_FALSE(tracks.may_receive(turn, ClientId(5)));  // client 5 owns the model
  }
}

TEST_CASE("not strict: a client may train for others on a model that it would not use itself") {
  TrackBook tracks = book("clients = 6\n" + disagreement("inbound", "0", "1"));
  play(tracks, 1);
  tracks.begin_round(RoundNumber(2));
  CHECK(tracks.may_receive(0, ClientId(0)));
  CHECK_FALSE(tracks.is_clean(0, ClientId(0)));
  CHECK(tracks.is_clean(1, ClientId(0)));
  CHECK_FALSE(tracks.may_receive(1, ClientId(1)));
}

TEST_CASE("a client that withdraws is dropped from patterns only if it has never had a part") {
  const std::string inbound = disagreement("inbound", "0", "1");
  TrackBook never = book("clients = 6\n" + inbound + disagreement("full", "1", ""));
  play(never, 1);
  CHECK(patterns(never) == std::vector<Ids>{{}});
  CHECK(never.withdrawn_in(RoundNumber(1)).contains(ClientId(1)));
  CHECK_FALSE(never.is_member(0, ClientId(1)));

  TrackBook later = book("clients = 6\n" + inbound + disagreement("full", "1", "", "from_round = 3\n"));
  for (std::uint32_t round = 1; round <= 4; ++round) play(later, round);
  // The common model contains client 1's updates: client 0 stays away from it.
  CHECK(patterns(later) == std::vector<Ids>{{}, {1}});
  CHECK(later.turn(1).description->owners == std::vector<std::string>{"0"});
}

TEST_CASE("who was a member and is none is said once, of each track that it leaves") {
  using Clients = std::vector<ClientId>;
  TrackBook tracks = book("clients = 6\n" + disagreement("inbound", "0", "1") +
                          disagreement("full", "2", "", "from_round = 2\nuntil_round = 3\n") +
                          disagreement("full", "5", ""));
  CHECK(play(tracks, 1).joined);
  CHECK(tracks.turn(0).left == Clients{ClientId(5)});  // client 5 may have connected before the first round
  CHECK(tracks.turn(1).left.empty());                  // the track starts without it
  play(tracks, 2);
  for (const std::size_t turn : {0U, 1U}) CHECK(tracks.turn(turn).left == Clients{ClientId(2)});
  CHECK_FALSE(play(tracks, 3).joined);
  for (const std::size_t turn : {0U, 1U}) CHECK(tracks.turn(turn).left.empty());
  CHECK(play(tracks, 4).joined);
  for (const std::size_t turn : {0U, 1U}) CHECK(tracks.turn(turn).left.empty());

  // Strict from round 2 on: client 0 no longer trains for the others. Without strict, it trains again.
  const std::string inbound = "clients = 6\n" + disagreement("inbound", "0", "1");
  TrackBook strict = book(inbound);
  play(strict, 1);
  strict.adopt(policy("strict = true\n" + inbound));
  play(strict, 2);
  CHECK(strict.turn(0).left == Clients{ClientId(0)});
  strict.adopt(policy(inbound));
  CHECK(play(strict, 3).joined);
  CHECK(strict.turn(0).left.empty());
  CHECK_FALSE(play(strict, 4).joined);
}

TEST_CASE("deep withdrawal: every model that the client has had a part in begins anew") {
  TrackBook tracks = book("clients = 6\n" + disagreement("inbound", "0", "1") +
                          disagreement("full", "1", "", "from_round = 3\ndeep = true\n"));
  play(tracks, 1);
  play(tracks, 2);
  const auto changes = play(tracks, 3);
  // The common model continues from client 0's track, which has always excluded client 1.
  REQUIRE(changes.started.size() == 1);
  CHECK(changes.started[0].source == TrackId(1));
  CHECK(changes.retired == std::vector<TrackId>{TrackId(0)});
  for (std::size_t turn = 0; turn < tracks.turns(); ++turn) CHECK(tracks.is_clean(turn, ClientId(0)));
  CHECK(play(tracks, 4).started.empty());

  TrackBook alone = book("clients = 6\n" + disagreement("full", "1", "", "from_round = 2\ndeep = true\n"));
  play(alone, 1);
  const auto anew = play(alone, 2);
  REQUIRE(anew.started.size() == 1);
  CHECK_FALSE(anew.started[0].source);
  CHECK(alone.turns() == 1);
}

TEST_CASE("deep withdrawal: what had forgiven the client its past begins anew as well") {
  // The model of client 0 has excluded client 1 since round 3, but started from a model with its updates.
  TrackBook tracks = book("clients = 6\n" + disagreement("inbound", "0", "1", "from_round = 3\n") +
                          disagreement("full", "1", "", "from_round = 5\ndeep = true\n"));
  for (std::uint32_t round = 1; round <= 4; ++round) play(tracks, round);
  const auto changes = play(tracks, 5);
  CHECK(changes.started.size() == tracks.turns());
  for (const auto& start : changes.started) CHECK_FALSE(start.source);
  CHECK(changes.retired.size() == 2);
}

TEST_CASE(
    "a disagreement that comes while the run goes on holds from the next round, and forgives the past") {
  const std::string none = "clients = 6\n";
  TrackBook tracks = book(none);
  play(tracks, 1);
  play(tracks, 2);
  tracks.adopt(policy(none + disagreement("inbound", "0", "1")));
  CHECK(tracks.turns() == 1);
  const auto begun = play(tracks, 3);
  REQUIRE(begun.started.size() == 1);
  CHECK(begun.started[0].source == TrackId(0));
  // A second track starts; the first one stays.
  tracks.adopt(policy(none + disagreement("inbound", "0", "1") + disagreement("inbound", "2", "3")));
  const auto second = play(tracks, 4);
  CHECK(second.started.size() == 1);
  CHECK(second.retired.empty());
  // The exclusions are lifted.
  tracks.adopt(policy(none));
  const auto lifted = play(tracks, 5);
  CHECK(lifted.started.empty());
  CHECK(lifted.retired.size() == 2);
  CHECK(patterns(tracks) == std::vector<Ids>{{}});
}

TEST_CASE("a deep disagreement that comes while the run goes on does not forgive the past") {
  TrackBook tracks = book("clients = 6\n");
  play(tracks, 1);
  tracks.adopt(policy("clients = 6\n" + disagreement("inbound", "0", "1", "deep = true\n")));
  const auto changes = play(tracks, 2);
  REQUIRE(changes.started.size() == 1);
  CHECK_FALSE(changes.started[0].source);
}

TEST_CASE("gradual lifting: a client that comes home counts a little more each round") {
  TrackBook tracks =
      book("clients = 6\n" + disagreement("inbound", "0", "1", "until_round = 2\n"), /*lifting_rounds=*/3);
  const auto weight = [&](std::uint32_t client) {
    return tracks.weight(turn_of(tracks, {}), ClientId(client), SampleCount(60)).value();
  };
  play(tracks, 1);
  CHECK(weight(0) == 60);  // unchanged: it has always trained this model for the others
  play(tracks, 2);
  play(tracks, 3);
  CHECK(weight(0) == 20);
  CHECK(weight(1) == 60);
  play(tracks, 4);
  CHECK(weight(0) == 40);
  play(tracks, 5);
  CHECK(weight(0) == 60);
}

TEST_CASE("gradual lifting: so does one that had withdrawn, and at least one sample counts") {
  TrackBook tracks =
      book("clients = 6\n" + disagreement("full", "2", "", "until_round = 1\n"), /*lifting_rounds=*/4);
  play(tracks, 1);
  CHECK(tracks.withdrawn_in(RoundNumber(1)).contains(ClientId(2)));
  play(tracks, 2);
  CHECK_FALSE(tracks.withdrawn_in(RoundNumber(2)).contains(ClientId(2)));
  CHECK(tracks.weight(0, ClientId(2), SampleCount(60)) == SampleCount(15));
  CHECK(tracks.weight(0, ClientId(2), SampleCount(1)) == SampleCount(1));
}

TEST_CASE("partial data: the largest share that a client withholds is kept out, while it lasts") {
  TrackBook tracks = book("clients = 6\n" + disagreement("partial_data", "3", "", "withheld = 0.25\n") +
                          disagreement("partial_data", "3", "", "withheld = 0.75\nfrom_round = 2\n"));
  play(tracks, 1);
  CHECK(tracks.data_share(ClientId(3)) == 0.75);
  CHECK(tracks.data_share(ClientId(2)) == 1.0);
  CHECK(tracks.turns() == 1);
  play(tracks, 2);
  CHECK(tracks.data_share(ClientId(3)) == 0.25);
}

TEST_CASE("self-exclusion and exclusion of everybody: the track has no part of whom it excludes") {
  std::string all =
      "[[disagreement]]\nkind = \"inbound\"\nclients = [\"0\"]\nagainst = [\"0\", \"1\", \"2\"]\n";
  TrackBook tracks = book("clients = 3\n" + all);
  for (std::uint32_t round = 1; round <= 3; ++round) {
    tracks.begin_round(RoundNumber(round));
    const std::size_t turn = turn_of(tracks, {0, 1, 2});
    for (std::uint32_t client = 0; client < 3; ++client)
      CHECK_FALSE(tracks.is_member(turn, ClientId(client)));
    tracks.contributed(turn_of(tracks, {}), ClientId(1));
  }
}

TEST_CASE("random policies: whatever comes and goes, no track is ever touched by whom its owners exclude") {
  Rng rng(11);
  for (int run = 0; run < 60; ++run) {
    std::string text = std::string("clients = 8\nstrict = ") + (run % 2 == 0 ? "true\n" : "false\n");
    for (int i = 0; i < 10; ++i) {
      const std::vector<std::string> kinds = {"inbound", "outbound", "bidirectional", "full"};
      const std::string& kind = kinds[rng.below(10) == 0 ? 3 : rng.below(3)];
      const std::uint64_t from = 1 + rng.below(6);
      std::string more = "from_round = " + std::to_string(from) + "\n";
      if (rng.below(2) == 0) more += "until_round = " + std::to_string(from + rng.below(5)) + "\n";
      if (rng.below(3) == 0) more += "deep = true\n";
      const std::uint64_t client = rng.below(8);
      const std::uint64_t against = (client + 1 + rng.below(7)) % 8;
      text += disagreement(kind, std::to_string(client), kind == "full" ? "" : std::to_string(against), more);
    }
    const aggregation::Policy rules = policy(text);
    TrackBook tracks = book(text);
    // The test's own record of each model: the last round in which each client took part.
    std::map<TrackId, std::vector<std::uint32_t>> touched{{TrackId(), std::vector<std::uint32_t>(8, 0)}};
    for (std::uint32_t round = 1; round <= 8; ++round) {
      const auto changes = tracks.begin_round(RoundNumber(round));
      for (const auto& start : changes.started)
        touched[start.track] = start.source ? touched.at(*start.source) : std::vector<std::uint32_t>(8, 0);
      for (const TrackId track : changes.retired)
        if (std::ranges::none_of(changes.started, [&](const auto& start) { return start.track == track; }))
          touched.erase(track);
      for (std::size_t turn = 0; turn < tracks.turns(); ++turn) {
        auto& last = touched.at(tracks.turn(turn).id);
        for (std::uint32_t client = 0; client < 8; ++client) {
          const bool owner =
              std::ranges::count(tracks.turn(turn).description->owners, std::to_string(client)) > 0;
          if (owner || (rules.strict && tracks.is_member(turn, ClientId(client))))
            for (const auto& entry : rules.disagreements) {
              if (!entry.is_active(RoundNumber(round)) || entry.against.empty()) continue;
              const auto hit = [&](ClientId c, ClientId x) {
                if (c != ClientId(client)) return;
                const std::uint32_t since = entry.deep || rules.strict ? 1 : entry.from_round.value();
                CHECK_MESSAGE(last[x.value()] < since, text, "round ", round, " client ", client);
              };
              if (entry.kind != aggregation::DisagreementKind::kOutbound)
                hit(entry.clients.front(), entry.against.front());
              if (entry.kind != aggregation::DisagreementKind::kInbound)
                hit(entry.against.front(), entry.clients.front());
            }
          if (tracks.is_member(turn, ClientId(client))) {
            CHECK(tracks.may_receive(turn, ClientId(client)));
            tracks.contributed(turn, ClientId(client));
            last[client] = round;
          }
        }
      }
    }
  }
}

}  // namespace fedge::server
