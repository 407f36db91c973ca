// Disagreements in whole runs: an excluded client changes no bit of a track that excludes it.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "sim/attacks/attacks.h"
#include "tests/unit/sim/simulated_run.h"

namespace fedge::sim {
namespace {

using Hashes = std::vector<std::string>;

std::string disagreement(const std::string& kind, std::uint32_t client, std::uint32_t against,
                         const std::string& more = "") {
  return "{ kind = \"" + kind + "\", clients = [\"" + std::to_string(client) + "\"]" +
         (kind == "full" ? "" : ", against = [\"" + std::to_string(against) + "\"]") + more + " }";
}

Settings disagreements(const std::string& list) { return {"tracks.disagreement=[" + list + "]"}; }

// Returns the hashes of the model of the track with exactly these exclusions, round by round; "" if there is
// none.
Hashes track(const Outcome& outcome, const std::vector<std::string>& exclude) {
  Hashes hashes;
  for (const auto& round : outcome.rounds) {
    hashes.emplace_back();
    for (const auto& metrics : round.tracks)
      if (metrics.track.exclude == exclude) hashes.back() = metrics.model_hash;
  }
  return hashes;
}

// All of ten clients train in every round.
const Settings kTracksAll = {"sampling.clients_per_round=10", "run.rounds=4"};

// One of ten clients is hostile; it is drawn from the seed 5, which SimulatedRun sets.
std::uint32_t hostile_client() {
  AttackSpec spec;
  spec.kind = AttackKind::kGaussian;
  spec.fraction = 0.1;
  const std::vector<bool> hostile = choose_attackers(spec, 10, Rng(5));
  REQUIRE(std::count(hostile.begin(), hostile.end(), true) == 1);
  return static_cast<std::uint32_t>(std::find(hostile.begin(), hostile.end(), true) - hostile.begin());
}

Settings attack(const std::string& kind, const std::string& strength) {
  return {"simulation.attack.kind=" + kind, "simulation.attack.fraction=0.1",
          "simulation.attack.strength=" + strength};
}

}  // namespace

TEST_CASE("tracks: without an active disagreement a run is plain FedAvg to the bit") {
  const Outcome plain = simulate(kTracksAll);
  const Outcome later =
      simulate(kTracksAll + disagreements(disagreement("inbound", 0, 1, ", from_round = 100")));
  CHECK(later.hashes() == plain.hashes());
  CHECK(track(later, {}) == plain.hashes());
  CHECK(plain.rounds.front().tracks.empty());
  CHECK(later.rounds.front().tracks.size() == 1);
}

TEST_CASE("tracks: a track is what a run without the excluded client is") {
  const Outcome apart = simulate(kTracksAll + disagreements(disagreement("inbound", 0, 4)));
  const Outcome without = simulate(kTracksAll + disagreements(disagreement("full", 4, 0)));
  CHECK(track(apart, {"4"}) == without.hashes());
  CHECK(track(apart, {}) == simulate(kTracksAll).hashes());
  CHECK(track(apart, {"4"}) != track(apart, {}));
}

TEST_CASE(
    "tracks: a track is what a run without the excluded client is, also where records decide who is asked") {
  const Settings by_records = {"run.rounds=8",
                               "sampling.clients_per_round=3",
                               "sampling.kind=aw_psp",
                               "sampling.weights=ipw",
                               "sampling.labels=sets",
                               "status.labels=sets",
                               "status.every_seconds=1000"};
  const Outcome apart = simulate(by_records + disagreements(disagreement("inbound", 0, 4)));
  const Outcome without = simulate(by_records + disagreements(disagreement("full", 4, 0)));
  CHECK(track(apart, {"4"}) == without.hashes());
  CHECK(track(apart, {}) == simulate(by_records).hashes());
  CHECK(track(apart, {"4"}) != track(apart, {}));
}

TEST_CASE(
    "perturbation: garbage from an excluded client leaves the track bit-identical, whatever the strategy") {
  const std::uint32_t x = hostile_client();
  const std::uint32_t owner = x == 0 ? 1 : 0;
  const Settings policy = kTracksAll + disagreements(disagreement("inbound", owner, x));
  const Settings lossy = {"compression.kind=top_k", "compression.error_feedback=true"};
  const std::vector<Settings> strategies = {
      {},
      {"strategy.kind=fedadam"},
      {"strategy.kind=fedavgm"},
      {"strategy.kind=median"},
      {"strategy.kind=centered_clip"},
      {"strategy.kind=multi_krum", "strategy.aggregator.byzantine=1"},
      {"strategy.kind=scaffold"},
      {"strategy.kind=fednova"},
      {"strategy.kind=fedplt", "model.kind=mlp", "model.hidden=[20, 10]"},
      {"strategy.kind=heterofl", "model.kind=mlp", "model.hidden=[20, 10]"},
      lossy,
      {"compression.kind=int8"},
      {"sampling.clients_per_round=4"},
      {"sampling.clients_per_round=4", "sampling.kind=optimal", "sampling.budget=3"},
      {"sampling.clients_per_round=4", "sampling.kind=optimal", "sampling.norms=remembered",
       "sampling.budget=2"},
  };
  for (const Settings& strategy : strategies) {
    CAPTURE(strategy.empty() ? "fedavg" : strategy.front());
    const Outcome honest = simulate(policy + strategy);
    // Different client data, noise, values beyond the permitted range, and other losses.
    for (const auto& perturbed : {attack("gaussian", "3"), attack("gaussian", "1e6"),
                                  attack("sign_flip", "20"), attack("label_flip", "1")}) {
      CAPTURE(perturbed[0] + " " + perturbed[2]);
      const Outcome outcome = simulate(policy + strategy + perturbed);
      CHECK(track(outcome, {std::to_string(x)}) == track(honest, {std::to_string(x)}));
      // Shows that the test can fail: the common model changes, unless the client was never selected or a
      // rule resisted.
      const bool shows = strategy.empty() || strategy == lossy || strategy.front() == "strategy.kind=fedadam";
      if (shows) CHECK(track(outcome, {}) != track(honest, {}));
    }
  }
}

TEST_CASE(
    "perturbation: how much data an excluded client uses, and whether it is there, leaves the track "
    "bit-identical") {
  const Settings policy = kTracksAll + disagreements(disagreement("inbound", 0, 3));
  const Outcome still = simulate(policy);
  // The client withholds most of its data, or does not take part.
  const Outcome partial = simulate(
      kTracksAll + disagreements(disagreement("inbound", 0, 3) +
                                 ", { kind = \"partial_data\", clients = [\"3\"], withheld = 0.75 }"));
  CHECK(track(partial, {"3"}) == track(still, {"3"}));
  CHECK(track(partial, {}) != track(still, {}));
  const Outcome gone = simulate(kTracksAll + disagreements(disagreement("inbound", 0, 3) + ", " +
                                                           disagreement("full", 3, 0, ", from_round = 3")));
  CHECK(track(gone, {"3"}) == track(still, {"3"}));
  CHECK(track(gone, {}) != track(still, {}));
}

TEST_CASE("perturbation: who drops out of one track's turn does not decide who drops out of another's") {
  // Tasks take far longer than a device is offline, so that all are connected when a track phase begins.
  const Settings flaky = {"run.rounds=12",
                          "run.round_deadline=1000000",
                          "simulation.device.samples_per_second=0.01",
                          "simulation.device.sigma=1",
                          "simulation.dropout.probability=0.3",
                          "simulation.dropout.offline_seconds=0"};
  std::size_t compared = 0;
  for (const std::uint32_t excluded : {2U, 3U, 4U, 6U, 8U}) {
    CAPTURE(excluded);
    const std::string inbound = disagreement("inbound", 0, excluded);
    const Outcome still = simulate(flaky + disagreements(inbound));
    const Outcome gone = simulate(
        flaky + disagreements(inbound + ", " + disagreement("full", excluded, 0, ", from_round = 6")));
    const Hashes without = track(gone, {std::to_string(excluded)});
    if (std::ranges::count(without, "") > 0)
      continue;  // the client never had a part, so that no track
                 // exists
    ++compared;
    CHECK(without == track(still, {std::to_string(excluded)}));
    CHECK(track(gone, {}) != track(still, {}));
  }
  CHECK(compared >= 3);
}

TEST_CASE("outbound and bidirectional: the other side's track is as clean") {
  const Outcome inbound = simulate(kTracksAll + disagreements(disagreement("inbound", 2, 6)));
  const Outcome outbound = simulate(kTracksAll + disagreements(disagreement("outbound", 6, 2)));
  const Outcome both = simulate(kTracksAll + disagreements(disagreement("bidirectional", 2, 6)));
  CHECK(track(outbound, {"6"}) == track(inbound, {"6"}));
  CHECK(track(both, {"6"}) == track(inbound, {"6"}));
  CHECK(track(both, {"2"}) == simulate(kTracksAll + disagreements(disagreement("full", 2, 0))).hashes());
}

TEST_CASE("temporary: while it lasts there are two models, afterwards one, and it is the common one") {
  const Outcome temporary =
      simulate(kTracksAll + disagreements(disagreement("inbound", 0, 1, ", until_round = 2")));
  const Outcome plain = simulate(kTracksAll);
  CHECK(temporary.rounds[1].tracks.size() == 2);
  CHECK(temporary.rounds[2].tracks.size() == 1);
  CHECK(track(temporary, {}) == plain.hashes());  // client 0 has always trained it
  CHECK(temporary.count("track.retired") == 1);
}

TEST_CASE("shallow and deep: a track that begins late goes on from the common model, or begins anew") {
  const std::string late = ", from_round = 3";
  const Outcome shallow = simulate(kTracksAll + disagreements(disagreement("inbound", 0, 1, late)));
  const Outcome deep =
      simulate(kTracksAll + disagreements(disagreement("inbound", 0, 1, late + ", deep = true")));
  const Outcome always = simulate(kTracksAll + disagreements(disagreement("inbound", 0, 1)));
  CHECK(track(shallow, {"1"})[1].empty());
  CHECK_FALSE(track(shallow, {"1"})[2].empty());
  CHECK(track(shallow, {"1"})[2] != track(deep, {"1"})[2]);
  CHECK(shallow.count("track.started") == 1);
  CHECK(shallow.count("from=\"track 0\"") == 1);
  CHECK(deep.count("from=\"the initial model\"") == 1);
  // Round numbers enter the random streams: a fresh start in round 3 differs from one in round 1.
  CHECK(track(deep, {"1"})[3] != track(always, {"1"})[1]);
}

TEST_CASE("deep: from its beginning the track is bit-identical whatever the excluded client did before") {
  const std::uint32_t x = hostile_client();
  const Settings policy =
      kTracksAll + disagreements(disagreement("inbound", x == 0 ? 1 : 0, x, ", from_round = 3, deep = true"));
  const Outcome honest = simulate(policy);
  const Outcome hostile = simulate(policy + attack("gaussian", "3"));
  CHECK(track(hostile, {std::to_string(x)}) == track(honest, {std::to_string(x)}));
  CHECK(track(hostile, {}) != track(honest, {}));
}

TEST_CASE(
    "strict: nobody trains on a model that it excludes a part of, so the common one has fewer members") {
  const Outcome strict =
      simulate(kTracksAll + disagreements(disagreement("inbound", 0, 1)) + Settings{"tracks.strict=true"});
  REQUIRE(strict.rounds[0].tracks.size() == 2);
  CHECK(strict.rounds[0].tracks[0].track.members == 9);
  CHECK(strict.rounds[0].tracks[0].clients_completed == 9);
  CHECK(track(strict, {"1"}) == simulate(kTracksAll + disagreements(disagreement("full", 1, 0))).hashes());
  CHECK(track(strict, {}) == simulate(kTracksAll + disagreements(disagreement("full", 0, 1))).hashes());
}

TEST_CASE("gradual lifting changes what a client that comes back counts, and in the end nothing else") {
  const Settings back = kTracksAll + disagreements(disagreement("full", 2, 0, ", until_round = 1"));
  const Outcome at_once = simulate(back);
  const Outcome gradual = simulate(back + Settings{"tracks.lifting_rounds=3"});
  CHECK(gradual.hashes()[0] == at_once.hashes()[0]);
  CHECK(gradual.hashes()[1] != at_once.hashes()[1]);
  CHECK(simulate(back + Settings{"tracks.lifting_rounds=1"}).hashes() == at_once.hashes());
}

TEST_CASE("tracks: participation counts a client once a round, in however many tracks it trains") {
  // Two tracks: all ten clients train the first, all but client 1 the second. Client 1 has half as many
  // trainings as the others: Gini 18 / (2 * 10 * 19) = 0.047.
  const Outcome all = simulate(kTracksAll + disagreements(disagreement("inbound", 0, 1)));
  REQUIRE(all.rounds.size() == 4);
  CHECK(server::trainings_completed(all.rounds[0]) == 10 + 9);
  CHECK(all.rounds[0].clients_selected == 10);
  CHECK(all.rounds[0].clients_completed == 10);
  CHECK(all.rounds[3].participation.gini == 0);
  CHECK(all.rounds[3].participation.jain == 1);
  CHECK(all.rounds[3].participation.gap == 0);
  // Client 1 is in no track. After r rounds, its count is 0 and that of the nine others r: Gini is 2 * 9 r /
  // (2 * 10 * 9 r) = 0.1, and Jain is (9 r)^2 / (10 * 9 r^2) = 0.9.
  const Outcome nine =
      simulate(kTracksAll + disagreements(disagreement("full", 1, 0) + ", " + disagreement("inbound", 0, 2)));
  CHECK(server::trainings_completed(nine.rounds[0]) == 9 + 8);
  CHECK(nine.rounds[0].clients_completed == 9);
  CHECK(nine.rounds[3].participation.gini == doctest::Approx(0.1));
  CHECK(nine.rounds[3].participation.jain == doctest::Approx(0.9));
  CHECK(nine.rounds[3].participation.gap == 4);
}

TEST_CASE("tracks: threads do not show, and dropouts neither stop a turn nor the run") {
  const Settings policy =
      kTracksAll + disagreements(disagreement("bidirectional", 0, 1) + ", " + disagreement("inbound", 2, 1) +
                                 ", " + disagreement("inbound", 7, 8));
  const Outcome one = simulate(policy);
  CHECK(one.rounds[0].tracks.size() == 4);
  CHECK(server::trainings_completed(one.rounds[0]) == 10 + 9 + 9 + 9);
  CHECK(one.rounds[0].clients_completed == 10);
  const Outcome four = simulate(policy, {.threads = 4});
  CHECK(four.hashes() == one.hashes());
  for (std::size_t i = 0; i < 4; ++i)
    CHECK(four.rounds.back().tracks[i].model_hash == one.rounds.back().tracks[i].model_hash);
  const Outcome flaky =
      simulate(policy + Settings{"simulation.dropout.probability=0.3", "simulation.dropout.offline_seconds=5",
                                 "run.round_deadline=30"});
  CHECK(flaky.rounds.size() == 4);
}

TEST_CASE("tracks: models of tracks that have ended take no room") {
  const test::TemporaryDirectory data;
  test::write_tiny_dataset(data);
  std::string list;
  for (int round = 1; round <= 29; round += 2) {
    const std::string when = std::to_string(round);
    list += (list.empty() ? "" : ", ") +
            disagreement("inbound", 0, 1, ", from_round = " + when + ", until_round = " + when);
  }
  SimulatedRun run(data.path(), disagreements(list) + Settings{"run.rounds=30"});
  run.store = protocol::make_memory_chunk_store(6 * run.task->model().layout()->size_bytes());
  const Outcome outcome = run.run();
  CHECK(outcome.rounds.size() == 30);
  CHECK(outcome.count("track.started") == 15);
}

TEST_CASE("tracks: thousands of rounds without anybody to train do not pile up") {
  const Outcome outcome = simulate(Settings{"run.rounds=30000", "run.evaluate_every=30000",
                                            "sampling.kind=poisson", "sampling.rate=1e-9"});
  CHECK(outcome.rounds.size() == 30000);
}

TEST_CASE("participation: with everybody in every round it is even, with few it is not") {
  const Outcome all = simulate(kTracksAll);
  CHECK(all.rounds.back().participation.gini == 0);
  CHECK(all.rounds.back().participation.jain == 1);
  const Outcome few = simulate({"sampling.clients_per_round=1", "run.rounds=2"});
  CHECK(few.rounds.back().participation.gini > 0.7);
  CHECK(few.rounds.back().participation.gap >= 1);
}

}  // namespace fedge::sim
