// SCAFFOLD over real links: what a client must remember from one task to the next, and who has lost it.
#include <filesystem>

#include "tests/integration/federation.h"

using namespace fedge;
using test::Federation;

namespace {

// Three daemons and four rounds in which everybody is asked.
struct Scaffold : Federation {
  Scaffold() : Federation(3, {"strategy.kind=scaffold", "run.rounds=4", "run.wait_for_clients=3"}) {
    for (int i = 0; i < 3; ++i) add_client();
  }
  std::filesystem::path memory_of(std::size_t client) const {
    return state_of(client) / "runs" / std::to_string(run.id.value());
  }
  // Nothing has been handled since the round was committed: the clients have not heard of the next.
  void until_closed(std::size_t round) {
    run_until([&] { return rounds.size() == round; });
  }
};

}  // namespace

TEST_CASE("scaffold: a client without its control variate refuses by name, and the run goes on without it") {
  Scaffold f;
  f.until_closed(1);
  REQUIRE(std::filesystem::exists(f.memory_of(1) / "task-1"));
  std::filesystem::remove_all(f.memory_of(1));
  f.run_to_the_end();
  REQUIRE(f.rounds.size() == 4);
  CHECK(f.rounds[0].clients_completed == 3);
  for (std::uint32_t round = 2; round <= 4; ++round) {
    CHECK(f.rounds[round - 1].clients_selected == 3);
    CHECK(f.rounds[round - 1].clients_completed == 2);
    CHECK(f.reported("client.lost round=" + std::to_string(round) +
                     " client=1 reason=\"this client has lost what its task 1 left, its control variate\""));
  }
  CHECK(f.count("client.lost") == 3);
  CHECK(f.rounds[3].model_hash != f.rounds[0].model_hash);
  CHECK(!std::filesystem::exists(f.memory_of(1)));  // it has not begun again in secret
}

TEST_CASE("scaffold: a client that was away and has kept its control variate goes on as if it had not been") {
  Scaffold undisturbed;
  undisturbed.run_to_the_end();
  Scaffold f;
  f.until_closed(2);
  f.stop_client(2);
  f.run_until([&] { return f.reported("client.lost round=3 client=2 reason=\"connection lost\""); });
  f.start_client(2);
  f.run_to_the_end();
  REQUIRE(f.rounds.size() == 4);
  for (const auto& round : f.rounds) CHECK(round.clients_completed == 3);
  CHECK(f.count("client.lost") == 1);
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
  f.run_until([&] { return f.reported("client.lost round=3 client=0 reason=\"connection lost\""); });
  f.start_client(0);
  f.run_to_the_end();
  CHECK(f.reported("client.lost round=3 client=0 reason=\"this client has lost what its task 2 left"));
  REQUIRE(f.rounds.size() == 4);
  CHECK(f.rounds[2].clients_completed == 2);
  CHECK(f.rounds[3].clients_completed == 2);
  CHECK(f.hashes() == stayed.hashes());
}
