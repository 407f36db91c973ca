// Runs whose clients exchange the model's chunks among themselves.
#include <doctest/doctest.h>

#include "tests/integration/federation.h"
#include "tests/integration/hostile_peer.h"

using namespace fedge;
using test::Federation;

namespace {

constexpr std::size_t kClients = 8;
constexpr std::uint64_t kModelBytes = 4 * (784 * 64 + 64 + 64 * 10 + 10);

struct Outcome {
  std::vector<std::string> hashes;
  std::uint64_t down = 0;  // in the last round
};

client::SwarmOptions listening() { return {.listen = protocol::Address{"127.0.0.1", 0}, .announce = {}}; }

Outcome outcome(const std::vector<std::string>& settings,
                const std::function<client::SwarmOptions(std::size_t)>& swarm_of) {
  std::vector<std::string> all = {"model.kind=mlp", "model.hidden=[64]", "run.chunk_size=4096",
                                  "run.rounds=3"};
  all.insert(all.end(), settings.begin(), settings.end());
  Federation f(kClients, all);
  f.swarm_of = swarm_of;
  for (std::size_t i = 0; i < kClients; ++i) f.add_client();
  f.run_to_the_end();
  return {f.hashes(), f.rounds.back().bytes_down};
}

}  // namespace

TEST_CASE("swarm: clients that exchange the model come to the same models, and the coordinator sends less") {
  const Outcome direct = outcome({}, {});
  const Outcome swarm = outcome({"dissemination.kind=swarm", "dissemination.copies=2"},
                                [](std::size_t) { return listening(); });
  CHECK(direct.hashes == swarm.hashes);
  CHECK(direct.down >= kClients * kModelBytes);
  MESSAGE("down ", swarm.down, " of ", kModelBytes);
  CHECK(swarm.down <= 3 * kModelBytes);
}
