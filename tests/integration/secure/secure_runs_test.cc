// Runs with secure aggregation over TLS: the same models as without, for any dropouts.
#include <doctest/doctest.h>

#include <string>
#include <variant>
#include <vector>

#include "server/store/input_codec.h"
#include "tests/integration/secure/secure_member.h"
#include "tests/support/settings.h"

namespace fedge::test {
namespace {

using fedge::test::operator+;

const Settings kExact = {"secure_aggregation.kind=exact"};

const Settings kTwoTracks =
    kExact + Settings{"run.rounds=2",
                      "differential_privacy.kind=distributed",
                      "differential_privacy.noise_multiplier=0.5",
                      "differential_privacy.max_participations=4",
                      "secure_aggregation.min_clients=2",
                      "tracks.disagreement=[{ kind = \"inbound\", clients = [\"0\", \"1\", \"2\", "
                      "\"4\"], against = [\"3\"] }]"};

// Returns the number of sums in the run's journal, as another process reads it.
std::size_t sums_on_disk(const Federation& federation) {
  const auto store =
      server::open_sqlite_store(server::run_store_path(federation.directory.path() / "coordinator"));
  REQUIRE_MESSAGE(store, store.error().message);
  std::size_t sums = 0;
  const auto read =
      (*store)->read_journal(federation.number, [&](const server::JournalEntry& entry) -> Result<void> {
        FEDGE_TRY(record, server::decode_record(entry.input));
        if (std::holds_alternative<server::SummedTurn>(record)) ++sums;
        return {};
      });
  REQUIRE_MESSAGE(read, read.error().message);
  return sums;
}

// The hashes of a run with this many honest clients.
struct Run {
  Run(std::size_t clients, const Settings& settings) : federation(clients, settings) {
    for (std::size_t i = 0; i < clients; ++i) federation.add_client();
    federation.run_to_the_end();
  }
  // Returns the models of all tracks, round by round.
  std::vector<std::string> hashes() const {
    std::vector<std::string> all = federation.hashes();
    for (const auto& round : federation.rounds)
      for (const auto& track : round.tracks) all.push_back(track.model_hash);
    return all;
  }
  Federation federation;
};

void check_same_model(std::size_t clients, const Settings& settings) {
  const Run plain(clients, settings);
  const Run secret(clients, settings + kExact);
  REQUIRE(secret.federation.rounds.size() == plain.federation.rounds.size());
  CHECK(secret.hashes() == plain.hashes());
  CHECK(secret.federation.reported("secure.keys_exchanged"));
  CHECK_FALSE(secret.federation.reported("round.not_aggregated"));
  for (const char* stage :
       {"secure_keys", "secure_shares", "secure.update_masked", "secure_consent", "secure_unmask"})
    CHECK(secret.federation.count(secret.federation.client_events, stage) > 0);
  for (std::size_t r = 0; r < plain.federation.rounds.size(); ++r)
    CHECK(secret.federation.rounds[r].train_loss ==
          doctest::Approx(plain.federation.rounds[r].train_loss).epsilon(1e-3));
}

// One round of six clients; the last one follows the test.
struct Scene {
  Scene(const Settings& settings, LastWord last) : federation(6, Settings{"run.rounds=1"} + settings) {
    for (int i = 0; i < 5; ++i) federation.add_client();
    member.emplace(federation, last);
  }
  Federation federation;
  std::optional<SecureMember> member;
};

// Returns the hash of the same round without masks, in which the sixth client delivers zeros or nothing.
std::string plain_hash(bool delivers) { return hash_without_secrets(5, delivers); }

}  // namespace

TEST_CASE(
    "secure runs: a client writes the keys of all others down at once, and again when there is a new one") {
  const Run secret(4, kExact);
  CHECK(secret.federation.rounds.size() == 2);
  CHECK(secret.federation.count(secret.federation.client_events, "known_clients.saved") == 4);
}

TEST_CASE("secure runs: means over TLS come to the model that they come to without") {
  check_same_model(5, {});
  check_same_model(5, {"strategy.aggregator.kind=uniform_mean"});
}

TEST_CASE("secure runs: updates of parts of the model come to the same models") {
  const Settings parts = {"model.kind=mlp", "model.hidden=[20]", "strategy.kind=fedplt",
                          "strategy.planner.shares=[0.5, 1.0]", "secure_aggregation.dropout=0.1"};
  Settings without = parts;
  without.pop_back();
  const Run plain(10, without);
  const Run secret(10, parts + kExact);
  CHECK(secret.hashes() == plain.hashes());
  CHECK(secret.federation.reported("parameters_left_out=0"));
}

TEST_CASE("secure runs: several tracks sum apart, each over TLS, where clients noise their updates") {
  const Run secret(8, kTwoTracks);
  CHECK_FALSE(secret.federation.reported("round.not_aggregated"));
  CHECK(secret.federation.count(secret.federation.events, "secure.keys_exchanged") == 4);
  REQUIRE(secret.federation.rounds.size() == 2);
  for (const auto& round : secret.federation.rounds) CHECK(round.tracks.size() == 2);
}

TEST_CASE("secure runs: the sum of each track phase is on the disk before a member is told, N1") {
  Federation f(8, kTwoTracks);
  for (int i = 0; i < 8; ++i) f.add_client();
  f.run_until([&] { return f.count(f.client_events, "update.accepted") > 0; });
  REQUIRE(f.rounds.empty());
  CHECK(sums_on_disk(f) == 1);
  // A coordinator that is started again goes on with that sum.
  f.restart_coordinator();
  f.run_to_the_end();
  CHECK_FALSE(f.reported("round.not_aggregated"));
  CHECK(sums_on_disk(f) == 4);
}

TEST_CASE("secure runs: a member that vanishes at any stage costs its own update at most") {
  const std::string with = plain_hash(true);
  const std::string without = plain_hash(false);
  REQUIRE(with != without);
  for (const LastWord last : {LastWord::kNothing, LastWord::kKeys, LastWord::kShares, LastWord::kUpdate,
                              LastWord::kConsent, LastWord::kAll}) {
    const bool delivers = last >= LastWord::kUpdate;
    INFO(static_cast<int>(last));
    Scene scene(kExact + Settings{delivers ? "run.seed=5" : "run.round_deadline=3"}, last);
    scene.federation.run_to_the_end();
    CHECK(scene.member->gone == (last != LastWord::kAll));
    CHECK(scene.federation.hashes()[0] == (delivers ? with : without));
    CHECK(scene.federation.rounds[0].clients_completed == (delivers ? 6 : 5));
  }
}

TEST_CASE("secure runs: too few are left, and the model stays what it was until the next round") {
  Federation f(3, {"run.rounds=2", "run.round_deadline=3", "secure_aggregation.kind=exact"});
  f.add_client();
  f.add_client();
  // All three clients are needed.
  SecureMember member(f, LastWord::kShares);
  f.run_until([&] { return f.rounds.size() == 1; });
  CHECK(f.reported("round.not_aggregated round=1"));
  const Run fresh(3, {"run.rounds=1"});
  CHECK(f.hashes()[0] != fresh.hashes()[0]);
  f.run_until([&] { return f.count(f.client_events, "the masked updates could not be summed") == 2; });
  f.run_to_the_end();  // two clients cannot form a sum
  CHECK(f.hashes()[1] == f.hashes()[0]);
}

TEST_CASE("secure runs: shares that are not what they should be are found out, and the sum is right") {
  Scene scene(kExact, LastWord::kAll);
  scene.member->says = [](protocol::Message& message) {
    if (auto* unmask = std::get_if<protocol::SecureUnmask>(&message))
      for (auto& survivor : unmask->survivors) survivor.self_mask[3] ^= 1;
    return true;
  };
  scene.federation.run_to_the_end();
  CHECK(scene.federation.hashes()[0] == plain_hash(true));
}

TEST_CASE("secure runs: an update that is no masked update spoils the round, never the model") {
  Scene scene(kExact, LastWord::kAll);
  scene.member->offers = [](std::vector<std::byte>& words) {
    for (std::size_t i = 0; i < words.size(); ++i) words[i] = static_cast<std::byte>(i * 7);
  };
  scene.federation.run_to_the_end();
  CHECK(scene.federation.reported("round.not_aggregated round=1"));
  CHECK(scene.federation.reported("is too large for the declared weight of the sum"));
}

TEST_CASE("secure runs: what a member says that does not fit excludes that member, and nobody else") {
  const std::string without = plain_hash(false);
  for (const int what : {0, 1, 2}) {
    INFO(what);
    Scene scene(kExact + Settings{"run.round_deadline=3", "secure_aggregation.patience=0.5"}, LastWord::kAll);
    scene.member->says = [what](protocol::Message& message) {
      auto* keys = std::get_if<protocol::SecureKeys>(&message);
      auto* shares = std::get_if<protocol::SecureShares>(&message);
      if (what == 0 && keys != nullptr) keys->keys.signature[5] ^= 1;
      if (what == 1 && shares != nullptr) shares->shares.pop_back();
      return what != 2 || shares == nullptr;  // drops the message and stays connected
    };
    scene.federation.run_to_the_end();
    CHECK(scene.federation.reported("secure.client_excluded"));
    CHECK(scene.federation.hashes()[0] == without);
  }
}

}  // namespace fedge::test
