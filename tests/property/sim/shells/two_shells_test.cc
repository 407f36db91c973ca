// One conductor in two shells: the coordinator's, with its journal, worker and transfers, and the
// simulator's, without latency. A random script is played in both; inputs, messages, events, models and
// deadlines must be equal. FEDGE_SHELL_SEEDS=10000 plays that many scripts.
#include <doctest/doctest.h>

#include <cstdlib>

#include "tests/property/sim/shells/script.h"

namespace fedge::server::shells {
namespace {

std::vector<std::string> recipe(std::uint64_t seed) {
  Rng draws = Rng(seed).fork("recipe");
  const auto one_of = [&](std::vector<std::string> choices) { return choices[draws.below(choices.size())]; };
  std::vector<std::string> settings = {
      "run.seed=" + std::to_string(seed), "sampling.clients_per_round=" + one_of({"1", "2", "3"}),
      "run.round_deadline=" + one_of({"30", "60"}), "run.return_within=" + one_of({"0", "10", "60"})};
  const auto add = [&](const std::string& setting) {
    if (!setting.empty()) settings.push_back(setting);
  };
  if (draws.below(3) == 0) {
    settings.insert(settings.end(), {"secure_aggregation.kind=exact", "secure_aggregation.min_clients=2",
                                     "sampling.clients_per_round=" + one_of({"2", "3", "4"}),
                                     "run.wait_for_clients=" + one_of({"2", "4"})});
    return settings;
  }
  const std::string kind = one_of({"fedavg", "fedbuff", "scaffold", "fedadam", "fednova"});
  add("strategy.kind=" + kind);
  if (kind == "fedbuff") add("strategy.schedule.buffer_size=" + one_of({"1", "2"}));
  if (kind == "fedavg")
    add(one_of({"", "sampling.kind=md", "sampling.kind=poisson", "sampling.kind=optimal"}));
  if (kind == "fedavg") add(one_of({"", "", "sampling.over_selection=1.5"}));
  return settings;
}

std::uint64_t wanted_seeds() {
  const char* const number = std::getenv("FEDGE_SHELL_SEEDS");
  return number != nullptr ? std::strtoull(number, nullptr, 10) : 100;
}

}  // namespace

TEST_CASE("two shells: the coordinator and the simulator come to the same") {
  test::TemporaryDirectory data;
  test::write_tiny_dataset(data);
  const char* const first = std::getenv("FEDGE_SHELL_FIRST");
  const std::uint64_t begin = first != nullptr ? std::strtoull(first, nullptr, 10) : 1;
  std::map<std::string, std::size_t> happened;
  std::size_t operations = 0;
  for (std::uint64_t seed = begin; seed < begin + wanted_seeds(); ++seed) {
    std::string recipe_text;
    const auto settings = recipe(seed);
    for (const std::string& setting : settings) recipe_text += " " + setting;
    const Scene scene(data.path(), settings);
    test::TemporaryDirectory directory;
    Script script(scene, directory.path(), seed);
    const std::string found = script.play(200);
    for (const std::string& event : script.seen().events) ++happened[event.substr(0, event.find(' '))];
    operations += script.log.size();
    std::string played;
    for (const std::string& operation : script.log) played += operation + "; ";
    REQUIRE_MESSAGE(found.empty(), "seed " << seed << ":" << recipe_text << "\n" << played << "\n" << found);
  }
  std::string tally = std::to_string(operations) + " operations";
  for (const auto& [event, times] : happened) tally += ", " + event + " " + std::to_string(times);
  MESSAGE(tally);
  for (const char* event : {"round.closed", "run.resumed", "secure.keys_exchanged", "round.not_aggregated"})
    CHECK_MESSAGE((happened[event] > 0 || wanted_seeds() < 50), event);
}

}  // namespace fedge::server::shells
