// Runs whose clients exchange the model's chunks among themselves.
#include <doctest/doctest.h>

#include "tests/integration/federation.h"
#include "tests/support/settings.h"

using namespace fedge;
using test::Federation;

namespace {

constexpr std::size_t kClients = 8;
constexpr std::uint64_t kModelBytes = 4 * (784 * 64 + 64 + 64 * 10 + 10);

const std::vector<std::string> kModel = {"model.kind=mlp", "model.hidden=[64]", "run.chunk_size=4096"};
const std::vector<std::string> kSwarm = {"dissemination.kind=swarm", "dissemination.copies=2"};

client::SwarmOptions listening() { return {.listen = protocol::Address{"127.0.0.1", 0}, .announce = {}}; }

using fedge::test::operator+;

struct Outcome {
  std::vector<std::string> hashes;
  std::uint64_t down = 0;  // in the last round
  std::vector<std::uint64_t> completed;
};

// The first `listeners` of eight clients accept links.
Outcome outcome(const std::vector<std::string>& settings, std::size_t listeners) {
  Federation f(kClients, kModel + settings);
  f.swarm_of = [listeners](std::size_t i) { return i < listeners ? listening() : client::SwarmOptions{}; };
  for (std::size_t i = 0; i < kClients; ++i) f.add_client();
  f.run_to_the_end();
  CHECK(f.count(f.client_events, "peer.dropped") == 0);
  Outcome outcome{f.hashes(), f.rounds.back().bytes_down, {}};
  for (const auto& round : f.rounds) outcome.completed.push_back(round.clients_completed);
  return outcome;
}

}  // namespace

TEST_CASE("swarm: clients that exchange the model come to the same models, and the coordinator sends less") {
  const Outcome direct = outcome({"run.rounds=3"}, 0);
  CHECK(direct.down >= kClients * kModelBytes);
  const Outcome swarm = outcome(kSwarm + std::vector<std::string>{"run.rounds=3"}, kClients);
  CHECK(swarm.hashes == direct.hashes);
  CHECK(swarm.down <= 3 * kModelBytes);
}

TEST_CASE("swarm: where some clients accept no links the others bring them the model") {
  const Outcome direct = outcome({"run.rounds=1"}, 0);
  const Outcome some = outcome(kSwarm + std::vector<std::string>{"run.rounds=1"}, 3);
  CHECK(some.hashes == direct.hashes);
  CHECK(some.down <= 4 * kModelBytes);
}

TEST_CASE("swarm: where no client accepts links the coordinator brings each the model, as the last resort") {
  const Outcome direct = outcome({"run.rounds=1"}, 0);
  const Outcome none = outcome(kSwarm + std::vector<std::string>{"run.rounds=1"}, 0);
  CHECK(none.hashes == direct.hashes);
  CHECK(none.down >= kClients * kModelBytes);
  CHECK(none.down <= direct.down + kClients * 4096);
}

TEST_CASE("swarm: devices that train parts of a model all get theirs, though nobody wants the rest") {
  std::vector<std::string> parts = {"run.rounds=3", "sampling.clients_per_round=3", "run.round_deadline=20"};
  SUBCASE("adapters of several ranks") {
    parts = parts + std::vector<std::string>{"strategy.kind=zero_pad", "model.adapter.rank=32",
                                             "strategy.planner.ranks=[1, 8, 32]"};
  }
  SUBCASE("parts of the whole model") {
    parts = parts + std::vector<std::string>{"model.hidden=[60]", "strategy.kind=fedplt"};
  }
  const Outcome direct = outcome(parts, 0);
  const Outcome swarm = outcome(kSwarm + parts, kClients);
  CHECK(swarm.hashes == direct.hashes);
  CHECK(swarm.completed == std::vector<std::uint64_t>(3, 3));
}

TEST_CASE("swarm: clients that vanish in the middle of it take nothing from the others") {
  Federation f(kClients, kModel + kSwarm + std::vector<std::string>{"run.rounds=2", "run.round_deadline=4"},
               {}, {}, 100'000);
  f.swarm_of = [](std::size_t) { return listening(); };
  for (std::size_t i = 0; i < kClients; ++i) f.add_client();
  f.run_until([&] { return f.reported("round.started round=1"); });
  // The coordinator needs two seconds to send the model; clients drop out before.
  const auto begun = std::chrono::steady_clock::now();
  f.run_until([&] { return std::chrono::steady_clock::now() - begun > std::chrono::milliseconds(700); });
  for (std::size_t i = 0; i < 3; ++i) f.stop_client(i);
  f.run_to_the_end();
  for (const auto& round : f.rounds) CHECK(round.clients_completed == kClients - 3);
}
