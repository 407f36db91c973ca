// Disagreements in a real federation: coordinator, daemons and a hostile peer over TLS.
#include <doctest/doctest.h>

#include <limits>
#include <string>
#include <vector>

#include "core/platform/files.h"
#include "server/policy_file.h"
#include "tests/integration/hostile_peer.h"

namespace fedge::test {
namespace {

using Hashes = std::vector<std::string>;

Hashes track(const Federation& federation, const std::vector<std::string>& exclude) {
  Hashes hashes;
  for (const auto& round : federation.rounds) {
    hashes.emplace_back();
    for (const auto& metrics : round.tracks)
      if (metrics.track.exclude == exclude) hashes.back() = metrics.model_hash;
  }
  return hashes;
}

const std::vector<std::string> kApart = {
    "run.rounds=3", "tracks.disagreement=[{ kind = \"inbound\", clients = [\"0\"], against = [\"3\"] }]"};

// Three honest clients, and one that sends this value for every parameter. The first track phase of each
// round is that of the model it may train.
struct Attacked {
  Attacked(const std::vector<std::string>& settings, float value) : federation(4, settings) {
    for (int i = 0; i < 3; ++i) federation.add_client();
    HostilePeer peer(federation);
    peer.join(federation.token());
    for (std::uint32_t round = 1; round <= 3; ++round) {
      peer.wait_for_task(round);
      CHECK(peer.task->track == TrackId(0));
      const auto update = peer.zero_update();
      for (float& parameter : update->values()) parameter = value;
      peer.send_update(peer.offer(update), update);
      accepted += peer.verdict->accepted ? 1 : 0;
    }
    federation.run_to_the_end();
  }
  Federation federation;
  int accepted = 0;
};

}  // namespace

TEST_CASE("perturbation over sockets: whatever an excluded client sends, the track is bit-identical") {
  Attacked small(kApart, 0.25F);
  Attacked large(kApart, -3.0F);
  CHECK(small.accepted == 3);
  CHECK(large.accepted == 3);
  REQUIRE(small.federation.rounds.size() == 3);
  CHECK(track(small.federation, {}) != track(large.federation, {}));
  CHECK(track(small.federation, {"3"}) == track(large.federation, {"3"}));
  CHECK(track(small.federation, {"3"})[0] != track(small.federation, {"3"})[2]);

  SUBCASE("values that are no numbers are refused, and the round goes on without") {
    std::vector<std::string> settings = kApart;
    Attacked nan(settings, std::numeric_limits<float>::quiet_NaN());
    CHECK(nan.accepted == 0);
    CHECK(track(nan.federation, {"3"}) == track(small.federation, {"3"}));
  }
  SUBCASE("it is what a federation without that client comes to") {
    Federation without(4, {"run.rounds=3", "run.wait_for_clients=3", "sampling.clients_per_round=3"});
    for (int i = 0; i < 3; ++i) without.add_client();
    without.run_to_the_end();
    CHECK(without.hashes() == track(small.federation, {"3"}));
  }
  SUBCASE("the run ends with both models") {
    const auto& models = **small.federation.final_models;
    REQUIRE(models.size() == 2);
    CHECK(models[0].track->exclude.empty());
    CHECK(models[1].track->exclude == std::vector<std::string>{"3"});
    CHECK(to_hex(model_hash(models[1].values.values())) == track(small.federation, {"3"}).back());
  }
}

TEST_CASE("an update for one track cannot be handed in for another") {
  Federation federation(4, kApart);
  for (int i = 0; i < 3; ++i) federation.add_client();
  HostilePeer peer(federation);
  peer.join(federation.token());
  peer.wait_for_task(1);
  const auto update = peer.zero_update();
  auto forged = peer.offer(update);
  forged.track = TrackId(1);
  peer.send_update(forged, update);
  CHECK_FALSE(peer.verdict->accepted);
  CHECK(peer.verdict->reason.find("round 1 is not training track 1 at present") != std::string::npos);
  peer.send_update(peer.offer(update), update);
  CHECK(peer.verdict->accepted);
  // The other track's phase follows, without this client.
  federation.run_until([&] { return !federation.rounds.empty(); });
  CHECK(federation.rounds[0].tracks[1].clients_completed == 3);
}

TEST_CASE("a disagreement added and lifted while the run goes on holds from the next round, and is kept") {
  Federation federation(3, {"run.rounds=5"});
  for (int i = 0; i < 3; ++i) federation.add_client();
  server::PolicyFile file = federation.policy();
  federation.after_round = [&] {
    const auto where = "the test";
    if (federation.rounds.size() == 1) {
      const config::Table inbound = {{"kind", {std::string("inbound"), where}},
                                     {"clients", {config::Array{{std::string("0"), where}}, where}},
                                     {"against", {config::Array{{std::string("2"), where}}, where}}};
      const auto place = file.add(inbound);
      REQUIRE(place);
      CHECK(*place == 1);
      config::Table unknown = inbound;
      unknown.at("against") = {config::Array{{std::string("9"), where}}, where};
      const auto refused = file.add(unknown);
      REQUIRE_FALSE(refused);
      CHECK(refused.error().message.find("\"9\" is not a client of this policy") != std::string::npos);
    }
    if (federation.rounds.size() == 3) {
      CHECK_FALSE(file.lift(2));
      REQUIRE(file.lift(1));
    }
  };
  federation.run_to_the_end();
  std::vector<std::size_t> tracks;
  for (const auto& round : federation.rounds) tracks.push_back(round.tracks.size());
  CHECK(tracks == std::vector<std::size_t>{0, 2, 2, 1, 1});
  CHECK(federation.count("policy.changed") == 2);
  CHECK(federation.count("track.started") == 1);
  const auto standing = file.read();
  REQUIRE(standing);
  CHECK(standing->disagreements.empty());
}

TEST_CASE("a disagreement added while the coordinator waits for clients holds from the first round") {
  Federation federation(3, {"run.rounds=2"});
  const auto where = "the test";
  REQUIRE(federation.policy().add({{"kind", {std::string("inbound"), where}},
                                   {"clients", {config::Array{{std::string("0"), where}}, where}},
                                   {"against", {config::Array{{std::string("2"), where}}, where}}}));
  for (int i = 0; i < 3; ++i) federation.add_client();
  federation.run_to_the_end();
  CHECK(federation.rounds[0].tracks.size() == 2);
}

TEST_CASE("a run that is stopped before a track has had its turn ends with that track's model, too") {
  Federation federation(4, kApart);
  for (int i = 0; i < 3; ++i) federation.add_client();
  HostilePeer peer(federation);
  peer.join(federation.token());
  peer.wait_for_task(1);
  federation.ask(server::RunStatus::kStopped, "the test");
  federation.run_to_the_end();
  const auto& models = **federation.final_models;
  REQUIRE(models.size() == 2);
  REQUIRE(models[1].track != nullptr);
  CHECK(models[1].track->exclude == std::vector<std::string>{"3"});
}

TEST_CASE("policy file: where secure sums alone hide updates, nobody is left out of one of two sums") {
  Federation federation(3, {"run.rounds=2", "secure_aggregation.kind=exact"});
  const auto where = "the test";
  const auto added =
      federation.policy().add({{"kind", {std::string("full"), where}},
                               {"clients", {config::Array{{std::string("1"), where}}, where}}});
  REQUIRE_FALSE(added);
  CHECK(added.error().message.find("unless the run uses secure aggregation without enough client noise") !=
        std::string::npos);
  // A file that another program puts there has no effect either.
  REQUIRE(write_file_atomic(federation.run_directory() / "policy.toml",
                            "clients = 3\n[[disagreement]]\nkind = \"full\"\nclients = [\"1\"]\n"));
  for (int i = 0; i < 3; ++i) federation.add_client();
  federation.run_to_the_end();
  for (const auto& round : federation.rounds) CHECK(round.tracks.empty());
  CHECK_FALSE(federation.reported("track.started"));
}

TEST_CASE("policy file: what an operator has written down for a run stays when it is gone on with") {
  Federation federation(2, {});
  const auto where = "the test";
  REQUIRE(federation.policy().add({{"kind", {std::string("full"), where}},
                                   {"clients", {config::Array{{std::string("1"), where}}, where}}}));
  const auto kept = federation.policy().open(federation.run.tracks.policy);
  REQUIRE(kept);
  CHECK(kept->disagreements.size() == 1);
}

TEST_CASE("a policy file that somebody has spoilt is reported, and what held before holds on") {
  Federation federation(2, {"run.rounds=3"});
  for (int i = 0; i < 2; ++i) federation.add_client();
  const auto file = federation.run_directory() / "policy.toml";
  federation.after_round = [&] {
    if (federation.rounds.size() == 1)
      REQUIRE(write_file_atomic(file, "clients = 2\n[[disagreement]]\nkind = 3\n"));
    if (federation.rounds.size() == 2) REQUIRE(write_file_atomic(file, "clients = 7\n"));
  };
  federation.run_to_the_end();
  CHECK(federation.rounds.size() == 3);
  CHECK(federation.count("policy.refused") == 2);
  CHECK(federation.reported("names other clients than the run"));
  CHECK(federation.rounds[2].tracks.empty());
}

}  // namespace fedge::test
