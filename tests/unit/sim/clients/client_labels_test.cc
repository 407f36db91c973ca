// Labels of a simulation's clients, and runs that select by them (sampling.where).
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "sim/clients/client_labels.h"
#include "tests/unit/sim/simulated_run.h"

namespace fedge::sim {
namespace {

using Names = std::vector<std::string>;

// The clients whose updates the run asked for, in all rounds.
std::set<std::uint32_t> trained(const Settings& settings) {
  std::set<std::uint32_t> clients;
  (void)simulate(settings, {.on_input = [&](const server::RunEngine::Input& input) {
                   if (const auto* stored = std::get_if<server::RunEngine::Stored>(&input))
                     clients.insert(stored->client.value());
                 }});
  return clients;
}

Result<Experiment> experiment(const std::string& extra) {
  auto document = config::parse_toml(
      "[run]\nrounds = 1\nwait_for_clients = 2\n[data]\npartition = { clients = 10 }\n[sampling]\n"
      "clients_per_round = 2\n" +
          extra,
      "test.toml");
  REQUIRE(document);
  return read_experiment(*document);
}

}  // namespace

TEST_CASE("client labels: numbers, ranges and several entries of a label") {
  const auto labels = ClientLabels::parse({"ward-3: 0-2, 7", "icu: 2", "ward-3: 9-9", "site:berlin: 1 - 2"});
  REQUIRE(labels);
  CHECK(labels->of(ClientId(0)) == Names{"ward-3"});
  CHECK(labels->of(ClientId(2)) == Names{"icu", "site:berlin", "ward-3"});
  CHECK(labels->of(ClientId(3)).empty());
  CHECK(labels->of(ClientId(7)) == Names{"ward-3"});
  CHECK(labels->of(ClientId(9)) == Names{"ward-3"});
  CHECK(labels->highest() == 9);
  CHECK(ClientLabels().empty());
}

TEST_CASE("client labels: an entry that is none is refused with its text") {
  for (const char* wrong : {"", "ward-3", ": 1", "ward-3:", "ward-3: x", "ward-3: 3-1", "ward-3: 1,",
                            "ward-3: 1,,2", "ward-3: -1", "ward-3: 1-", "ward-3: 99999999999"}) {
    const auto labels = ClientLabels::parse({wrong});
    CAPTURE(wrong);
    REQUIRE_FALSE(labels);
    CHECK(labels.error().message.find("'" + std::string(wrong) + "'") != std::string::npos);
  }
}

TEST_CASE("sampling.where: only clients that fulfil the condition take part in a simulation") {
  const Settings some = {"simulation.labels=[\"ward-3: 1-4\", \"test: 4\", \"ward-4: 5-9\"]",
                         "run.wait_for_clients=3", "run.rounds=6", "sampling.clients_per_round=2"};
  CHECK(trained(some + Settings{"sampling.where=label == 'ward-3' and not label == 'test'"}) ==
        std::set<std::uint32_t>{1, 2, 3});
  // Also in an asynchronous run.
  CHECK(trained(some + Settings{"sampling.where=label == 'ward-4'", "strategy.kind=fedbuff",
                                "strategy.schedule.buffer_size=2", "sampling.clients_per_round=5"}) ==
        std::set<std::uint32_t>{5, 6, 7, 8, 9});
}

TEST_CASE(
    "sampling.where: a simulation in which too few clients have such labels is refused before it begins") {
  const auto refused = experiment("where = \"label == 'ward-3'\"\n[simulation]\nlabels = [\"ward-3: 5\"]\n");
  REQUIRE_FALSE(refused);
  CHECK(refused.error().message.find("only 1 clients of the simulation have such labels") !=
        std::string::npos);
  CHECK(experiment("where = \"label == 'ward-3'\"\n[simulation]\nlabels = [\"ward-3: 5-6\"]\n"));
  const auto high = experiment("[simulation]\nlabels = [\"ward-3: 5-10\"]\n");
  REQUIRE_FALSE(high);
  CHECK(high.error().message.find("names client 10, but the clients of the run are 0 to 9") !=
        std::string::npos);
  const auto wrong = experiment("where = \"label = 'ward-3'\"\n");
  REQUIRE_FALSE(wrong);
  CHECK(wrong.error().message.find("sampling.where") != std::string::npos);
}

}  // namespace fedge::sim
