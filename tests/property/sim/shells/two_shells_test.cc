// One conductor in two shells: the coordinator's, with its journal, worker, transfers and swarm, and the
// simulator's, without latency. A random script is played in both; inputs, messages, events, models and
// deadlines must be equal. FEDGE_SHELL_SEEDS=10000 plays that many scripts of each kind.
//
// In serverless runs, both shells use their own place among the exchanging clients: the coordinator's Seeder
// and RunExchange over links in memory, the simulator's VirtualExchange and VirtualSwarm. Not compared is
// what only one of them has: messages between members of a swarm, addresses of other clients, and chunks that
// clients exchange among themselves. Not compared either is a wrong model that a majority aggregates, because
// a simulation computes the model once. A script ends if the shells ask different clients for a model that
// both hold; at most one in a hundred may.
#include <doctest/doctest.h>

#include <cstdlib>

#include "tests/property/sim/shells/recipes.h"
#include "tests/property/sim/shells/script.h"

namespace fedge::server::shells {
namespace {

std::uint64_t number_of(const char* variable, std::uint64_t otherwise) {
  const char* const number = std::getenv(variable);
  return number != nullptr ? std::strtoull(number, nullptr, 10) : otherwise;
}

// Plays scripts of this kind; these events must occur in some of them.
void play(Recipe& (Recipe::*kind)(), std::size_t operations, const std::vector<std::string>& expected) {
  test::TemporaryDirectory data;
  test::write_tiny_dataset(data);
  const std::uint64_t begin = number_of("FEDGE_SHELL_FIRST", 1);
  const std::uint64_t seeds = number_of("FEDGE_SHELL_SEEDS", 100);
  std::map<std::string, std::size_t> happened;
  std::size_t played = 0;
  std::size_t early = 0;
  for (std::uint64_t seed = begin; seed < begin + seeds; ++seed) {
    Recipe recipe(seed);
    const auto settings = (recipe.*kind)().settings();
    std::string text;
    for (const std::string& setting : settings) text += " " + setting;
    const Scene scene(data.path(), settings);
    test::TemporaryDirectory directory;
    Script script(scene, directory.path(), seed);
    const std::string found = script.play(operations);
    for (const std::string& event : script.seen().events) ++happened[event.substr(0, event.find(' '))];
    played += script.log.size();
    if (script.ended_early()) ++early;
    std::string log;
    for (const std::string& operation : script.log) log += operation + "; ";
    REQUIRE_MESSAGE(found.empty(), "seed " << seed << ":" << text << "\n" << log << "\n" << found);
  }
  std::string tally = std::to_string(played) + " operations";
  for (const auto& [event, times] : happened) tally += ", " + event + " " + std::to_string(times);
  MESSAGE(tally << ", scripts ended early " << early);
  CHECK(100 * early <= seeds);
  for (const std::string& event : expected) CHECK_MESSAGE((happened[event] > 0 || seeds < 50), event);
}

}  // namespace

TEST_CASE("two shells: the coordinator and the simulator come to the same") {
  play(&Recipe::direct, 200, {"round.closed", "run.resumed", "buffer.closed"});
}

TEST_CASE("two shells: the same with secure aggregation") {
  play(&Recipe::secure, 200, {"secure.keys_exchanged", "run.resumed", "round.not_aggregated"});
}

TEST_CASE("two shells: the same with several tracks") {
  play(&Recipe::tracks, 200, {"round.closed", "run.resumed"});
}

TEST_CASE("two shells: the same in serverless runs") {
  play(&Recipe::serverless, 300,
       {"round.updates_exchanged", "run.resumed", "round.not_aggregated", "disk.full", "round.warmup_ended"});
}

}  // namespace fedge::server::shells
