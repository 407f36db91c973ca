// Kills coordinator and clients repeatedly at random times until the run has ended: its models must equal
// those of an undisturbed run. FEDGE_KILLS is the number of kills, FEDGE_KILL_SEED selects them.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "core/rng.h"
#include "tests/faults/wanted_kills.h"
#include "tests/faults/whole_run.h"
#include "tests/support/text.h"

using namespace fedge;
using test::Setting;
using test::WholeRun;

namespace {

// Kills until the run has ended or `most` is reached; returns the number of kills.
std::size_t disturb(WholeRun& whole, Rng& rng, std::size_t most) {
  whole.begin_well();
  for (std::size_t kills = 0; kills < most;) {
    const auto pause = static_cast<int>(rng.below(300));
    // 0 and 1: one client; 2: the coordinator; 3: the coordinator and all clients.
    const std::uint64_t victim = whole.setting.clients_die ? rng.below(4) : 2;
    if (whole.server->ends_within(pause)) return kills;
    ++kills;
    const auto one = static_cast<std::size_t>(rng.below(whole.setting.clients));
    if (victim >= 2) whole.server->kill();
    if (victim == 3) whole.kill_clients();
    if (victim < 2) whole.start_client(one);  // kills its predecessor
    if (victim >= 2 && !whole.go_on()) return kills;
    if (victim == 3) whole.start_clients();
  }
  return most;
}

// Performs the kills of one setting over as many runs as necessary.
void kill_loop(const Setting& setting) {
  const std::string expected = test::undisturbed(setting);
  const auto [wanted, seed] = test::wanted_kills();
  std::size_t kills = 0;
  std::size_t acknowledged = 0;
  Rng rng(seed);
  for (std::size_t runs = 0; kills < wanted; ++runs) {
    INFO("FEDGE_KILL_SEED=" << seed << ", run " << runs << " of " << std::string(setting.name));
    WholeRun whole(setting);
    kills += disturb(whole, rng, wanted - kills);
    whole.check(expected);
    for (const auto& [client, rounds] : whole.acknowledged()) acknowledged += rounds.size();
  }
  CHECK(acknowledged > 0);  // otherwise no update could have been lost
  MESSAGE(std::string(setting.name) << ": " << kills << " kills from seed " << seed << ", " << acknowledged
                                    << " updates acknowledged, none lost");
}

}  // namespace

TEST_CASE("kill loop: fedavg comes to the undisturbed models, nothing acknowledged is lost, N1 N4, row 1") {
  kill_loop({"fedavg", "", 3, 4});
}

TEST_CASE("kill loop: scaffold comes to the undisturbed models, nothing acknowledged is lost, N1 N4, row 1") {
  kill_loop({"scaffold", "[strategy]\nkind = \"scaffold\"\n", 3, 4});
}

TEST_CASE("kill loop: fedadam with int8 comes to the undisturbed models, N1 N4, row 1") {
  kill_loop({"fedadam", "[strategy]\nkind = \"fedadam\"\n[compression]\nkind = \"int8\"\n", 3, 4});
}

TEST_CASE("kill loop: krum comes to the undisturbed models, N1 N4, row 1") {
  kill_loop({"krum", "[strategy]\nkind = \"krum\"\n", 3, 4});
}

TEST_CASE("kill loop: split training comes to the undisturbed models, N1 N4, row 1") {
  kill_loop(test::split_setting(3, 4));
}

TEST_CASE("replay: split training with cuts that follow measured times is carried out again to its models") {
  Setting setting = test::split_setting(3, 6);
  setting.strategy =
      "local_steps = 5\noptimizer = { kind = \"adamw\" }\n[strategy]\nkind = \"splitft\"\n"
      "planner = { blocks = 2, period = 1, gamma = 2, kappa = 10, cut_ranks = 2 }\n";
  WholeRun whole(setting);
  whole.begin_well();
  if (!whole.server->ends_within(300)) {
    whole.server->kill();
    whole.go_on();
  }
  whole.finish_anyhow();
  const auto replayed = test::run("fedge-sim replay " + whole.data().string() + " --format json");
  CHECK_MESSAGE(replayed.code == 0, replayed.output);
  CHECK(test::contains(replayed.output, "\"difference\":null"));
  for (const auto& round : whole.rounds())
    CHECK_MESSAGE(test::contains(replayed.output, R"("replayed":")" + round.model_hash), replayed.output);
}

TEST_CASE("kill loop: a run without a server comes to the undisturbed models, N1 N4, row 1") {
  kill_loop({"serverless", "[dissemination]\nkind = \"serverless\"\n", 3, 4});
}

TEST_CASE(
    "kill loop: a run without a server and with warm-ups comes to the undisturbed models, N1 N4, row 1") {
  kill_loop({"warmup",
             "[dissemination]\nkind = \"serverless\"\nwarmup = { scheduler = \"greedy_fastest_first\", "
             "spray_ratio = 0, threshold = 0.0001 }\n",
             3, 4});
}

TEST_CASE("kill loop: an asynchronous run of one client comes to the undisturbed models, N1 N4, row 1") {
  kill_loop({"fedbuff", "[strategy]\nkind = \"fedbuff\"\nschedule = { buffer_size = 1 }\n", 1, 8, false});
}

// The coordinator keeps the members' unmasking messages in memory only. A kill while it unmasks loses that
// track phase's updates, which it reports. All other kills cost nothing.
TEST_CASE(
    "kill loop: secure sums come to the undisturbed models, but for turns that are said to be lost, row 1") {
  const Setting setting{"secure", "[secure_aggregation]\nkind = \"exact\"\n", 3, 6, false};
  const std::string expected = test::undisturbed(setting);
  const auto [wanted, seed] = test::wanted_kills();
  std::size_t kills = 0;
  std::size_t undisturbed = 0;
  std::size_t lost = 0;
  Rng rng(seed);
  // Play more runs while every run has lost a track phase: then nothing has been compared.
  for (std::size_t runs = 0; kills < wanted || (undisturbed == 0 && runs < 20); ++runs) {
    INFO("FEDGE_KILL_SEED=" << seed << ", run " << runs);
    WholeRun whole(setting);
    kills += disturb(whole, rng, std::max<std::size_t>(wanted, kills + 1) - kills);
    whole.finish_anyhow();
    CHECK(whole.rounds().size() == setting.rounds);
    whole.check_files();
    if (test::contains(whole.server_log(), "round.not_aggregated")) {
      ++lost;
      continue;
    }
    CHECK_MESSAGE(whole.hashes() == expected, whole.server_log());
    ++undisturbed;
  }
  CHECK(undisturbed > 0);
  MESSAGE("secure: " << kills << " kills from seed " << seed << ", " << undisturbed
                     << " runs undisturbed, in " << lost << " a turn was lost");
}

// All coordinators share one noise key, as in one data directory. A client that drops out has lost its place:
// the round waits for exactly the drawn clients.
TEST_CASE("kill loop: a private run ends when its budget is spent, and no kill gets it a round more, row 1") {
  const Setting setting{"private",
                        "[differential_privacy]\nkind = \"central\"\nnoise_multiplier = 2.0\nepsilon = 4.6\n",
                        3, 12, false};
  constexpr std::size_t kAllowed = 4;  // five releases would cost 4.98
  const auto finished = [&](WholeRun& whole) {
    whole.finish_anyhow();
    const auto rounds = whole.rounds();
    REQUIRE(rounds.size() == kAllowed);
    for (std::size_t r = 1; r < rounds.size(); ++r) CHECK(rounds[r].epsilon > rounds[r - 1].epsilon);
    CHECK(rounds.back().epsilon <= 4.6);
    CHECK(test::contains(whole.server_log(), "the privacy budget is spent"));
    whole.check_files();
    return whole.hashes();
  };
  WholeRun calm(setting);
  calm.keep_noise_key();
  calm.begin_well();
  const std::string expected = finished(calm);
  const auto [wanted, seed] = test::wanted_kills();
  Rng rng(seed);
  std::size_t kills = 0;
  for (std::size_t runs = 0; kills < wanted; ++runs) {
    INFO("FEDGE_KILL_SEED=" << seed << ", run " << runs);
    WholeRun whole(setting);
    whole.keep_noise_key();
    kills += disturb(whole, rng, wanted - kills);
    CHECK(finished(whole) == expected);
  }
  MESSAGE("private: " << kills << " kills from seed " << seed << ", always " << kAllowed << " rounds");
}
