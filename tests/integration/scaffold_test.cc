// SCAFFOLD and FedDyn over real links: the state that a client keeps from task to task, and clients that have
// lost it.
#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/integration/federation.h"

using namespace fedge;
using test::Federation;

namespace {

// Three daemons and four rounds in which all are selected.
struct Scaffold : Federation {
  explicit Scaffold(const std::string& strategy = "scaffold")
      : Federation(3, {"strategy.kind=" + strategy, "run.rounds=4", "run.wait_for_clients=3"}) {
    for (int i = 0; i < 3; ++i) add_client();
  }
  std::filesystem::path memory_of(std::size_t client) const {
    return state_of(client) / "runs" / std::to_string(run.id.value());
  }
  // Returns right after the round was committed: clients do not yet know the next round.
  void until_closed(std::size_t round) {
    run_until([&] { return rounds.size() == round; });
  }
};

}  // namespace

TEST_CASE("scaffold: a client without its control variate refuses by name, and the run goes on without it") {
  std::string strategy;
  SUBCASE("scaffold") { strategy = "scaffold"; }
  SUBCASE("feddyn") { strategy = "feddyn"; }
  Scaffold f(strategy);
  f.until_closed(1);
  REQUIRE(std::filesystem::exists(f.memory_of(1) / "task-1"));
  std::filesystem::remove_all(f.memory_of(1));
  f.run_to_the_end();
  REQUIRE(f.rounds.size() == 4);
  CHECK(f.rounds[0].clients_completed == 3);
  for (std::uint32_t round = 2; round <= 4; ++round) {
    CHECK(f.rounds[round - 1].clients_selected == 3);
    CHECK(f.rounds[round - 1].clients_completed == 2);
    CHECK(f.reported("client.dropped round=" + std::to_string(round) +
                     " client=1 reason=\"this client has lost the correction of its task 1\""));
  }
  CHECK(f.count("client.dropped") == 3);
  CHECK(f.rounds[3].model_hash != f.rounds[0].model_hash);
  CHECK(!std::filesystem::exists(f.memory_of(1)));  // it has not silently started from scratch
}

TEST_CASE("scaffold: what a daemon remembers of a track goes with the track, and that of the others stays") {
  Federation f(3, {"strategy.kind=scaffold", "run.rounds=4",
                   R"(tracks.disagreement=[{ kind = "inbound", clients = ["0"], against = ["2"] },)"
                   R"({ kind = "inbound", clients = ["1"], against = ["0"], until_round = 2 }])"});
  std::vector<std::vector<std::string>> kept;  // state files of clients 1 and 2 after each round
  f.after_round = [&] {
    for (const std::size_t client : {1U, 2U}) {
      kept.emplace_back();
      for (const auto& entry : std::filesystem::directory_iterator(f.state_of(client) / "runs" /
                                                                   std::to_string(f.run.id.value())))
        kept.back().push_back(entry.path().filename().string());
      std::ranges::sort(kept.back());
    }
  };
  for (int i = 0; i < 3; ++i) f.add_client();
  f.run_to_the_end();
  // Track 0 excludes no client, track 1 excludes client 0 and ends after round 2, track 2 excludes client 2.
  using Names = std::vector<std::string>;
  REQUIRE(kept.size() == 8);
  CHECK(kept[2] == Names{"task-1", "task-2", "track-1", "track-2"});
  CHECK(kept[3] == Names{"task-1", "task-2", "track-1"});
  CHECK(kept[6] == Names{"task-3", "task-4", "track-2"});
  CHECK(kept[7] == Names{"task-3", "task-4"});
}

TEST_CASE("scaffold: a client that was away and has kept its control variate goes on as if it had not been") {
  Scaffold undisturbed;
  undisturbed.run_to_the_end();
  Scaffold f;
  f.until_closed(2);
  f.stop_client(2);
  f.run_until([&] { return f.reported("client.dropped round=3 client=2 reason=\"connection lost\""); });
  f.start_client(2);
  f.run_to_the_end();
  REQUIRE(f.rounds.size() == 4);
  for (const auto& round : f.rounds) CHECK(round.clients_completed == 3);
  CHECK(f.count("client.dropped") == 1);
  CHECK(f.hashes() == undisturbed.hashes());
}

TEST_CASE(
    "scaffold: a client that comes back without its control variate is no better than one that stayed") {
  Scaffold stayed;
  stayed.until_closed(2);
  std::filesystem::remove_all(stayed.memory_of(0));
  stayed.run_to_the_end();
  Scaffold f;
  f.until_closed(2);
  f.stop_client(0);
  std::filesystem::remove_all(f.memory_of(0));
  f.run_until([&] { return f.reported("client.dropped round=3 client=0 reason=\"connection lost\""); });
  f.start_client(0);
  f.run_to_the_end();
  CHECK(f.reported(
      "client.dropped round=3 client=0 reason=\"this client has lost the correction of its task 2"));
  REQUIRE(f.rounds.size() == 4);
  CHECK(f.rounds[2].clients_completed == 2);
  CHECK(f.rounds[3].clients_completed == 2);
  CHECK(f.hashes() == stayed.hashes());
}
