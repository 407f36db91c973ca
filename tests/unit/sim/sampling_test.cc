// Whole runs with each sampler, and with the barriers of an asynchronous run.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>

#include "tests/unit/sim/simulated_run.h"

using namespace fedge;
using sim::Outcome;
using sim::Settings;
using sim::simulate;
using sim::operator+;

namespace {

double largest_difference(const std::vector<float>& a, const std::vector<float>& b) {
  REQUIRE(a.size() == b.size());
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    largest = std::max(largest, std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i])));
  return largest;
}

Settings barrier(const Settings& settings) {
  return Settings{"run.rounds=12",
                  "strategy.kind=fedbuff",
                  "strategy.schedule.buffer_size=5",
                  "sampling.clients_per_round=10",
                  "simulation.device.samples_per_second=1",
                  "simulation.device.sigma=1.5"} +
         settings;
}

// Returns the largest difference between two clients' numbers of submitted updates, at any time.
int spread(const Outcome& outcome) {
  std::map<std::string, int> counts;
  for (int i = 0; i < 10; ++i) counts[std::to_string(i)] = 0;
  int largest = 0;
  for (const std::string& event : outcome.events) {
    const std::string start = "update.buffered client=";
    if (!event.starts_with(start)) continue;
    ++counts.at(event.substr(start.size(), event.find(' ', start.size()) - start.size()));
    const auto [fewest, most] = std::minmax_element(
        counts.begin(), counts.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
    largest = std::max(largest, most->second - fewest->second);
  }
  return largest;
}

}  // namespace

TEST_CASE("sampling: a run with each sampler ends, moves the model, and repeats itself on other threads") {
  for (const char* kind : {"poisson", "md", "power_of_choice", "oort", "psp"}) {
    CAPTURE(kind);
    Settings settings{std::string("sampling.kind=") + kind, "run.rounds=8", "simulation.device.sigma=1",
                      "simulation.dropout.probability=0.1"};
    if (std::string(kind) == "poisson") settings.emplace_back("sampling.weights=ipw");
    const Outcome first = simulate(settings);
    const Outcome again = simulate(settings, {.threads = 3});
    REQUIRE(first.rounds.size() == 8);
    CHECK(first.hashes() == again.hashes());
    CHECK(first.events == again.events);
    CHECK(first.models.front() != first.models.back());
    CHECK(simulate(settings + Settings{"run.seed=6"}).hashes() != first.hashes());
  }
}

TEST_CASE("sampling: psp is uniform sampling by another name") {
  CHECK(simulate({"sampling.kind=psp"}).hashes() == simulate({}).hashes());
}

TEST_CASE("sampling: Poisson sampling with probability 1 is everybody, weighed by samples") {
  const Settings everybody{"sampling.clients_per_round=10", "data.partition.kind=dirichlet"};
  const Outcome uniform = simulate(everybody);
  CHECK(simulate(everybody + Settings{"sampling.kind=poisson", "sampling.rate=1"}).hashes() ==
        uniform.hashes());
  // n_i / (n q) as a factor of n_i / n: equal apart from rounding.
  const Outcome inverse =
      simulate(everybody + Settings{"sampling.kind=poisson", "sampling.rate=1", "sampling.weights=ipw"});
  CHECK(largest_difference(inverse.models.back(), uniform.models.back()) < 1e-6);
}

TEST_CASE("sampling: rounds of a Poisson sample differ in size, and one of nobody leaves the model alone") {
  const Outcome outcome = simulate({"sampling.kind=poisson", "sampling.rate=0.15", "run.rounds=20"});
  REQUIRE(outcome.rounds.size() == 20);
  std::size_t empty = 0;
  std::size_t largest = 0;
  for (std::size_t i = 0; i < 20; ++i) {
    const auto& round = outcome.rounds[i];
    CHECK(round.clients_completed == round.clients_selected);
    largest = std::max<std::size_t>(largest, round.clients_selected);
    if (round.clients_selected > 0) continue;
    ++empty;
    CHECK(outcome.models[i + 1] == outcome.models[i]);
  }
  // (1 - 0.15)^10 = 0.197 of the rounds are empty. All or none of 20 would be empty with p < 0.013.
  CHECK(empty > 0);
  CHECK(largest > 1);
}

TEST_CASE("sampling: md with a single client is FedAvg to the bit, however many draws it gets") {
  const Settings alone{"data.partition.clients=1"};
  const auto expected = simulate(alone).hashes();
  for (const char* draws : {"1", "3", "4"})
    CHECK(simulate(alone + Settings{"sampling.kind=md", std::string("sampling.clients_per_round=") + draws})
              .hashes() == expected);
}

TEST_CASE("barrier: asp is the run without a barrier, in which fast clients leave slow ones behind") {
  const Outcome plain = simulate(barrier({}));
  CHECK(simulate(barrier({"strategy.schedule.barrier=asp"})).events == plain.events);
  CHECK(spread(plain) > 4);
}

TEST_CASE("barrier: devices of unlike speed stay within one update with bsp, and theta + 1 with ssp") {
  const Outcome bsp = simulate(barrier({"strategy.schedule.barrier=bsp"}));
  CHECK(bsp.rounds.size() == 12);
  CHECK(spread(bsp) == 1);
  const Outcome ssp =
      simulate(barrier({"strategy.schedule.barrier=ssp", "strategy.schedule.barrier_staleness=2"}));
  CHECK(spread(ssp) > 1);
  CHECK(spread(ssp) <= 3);
  CHECK(ssp.seconds < bsp.seconds);
  // Sampling all nine others equals the full barrier.
  CHECK(simulate(barrier({"strategy.schedule.barrier=pbsp", "strategy.schedule.barrier_sample=9"})).events ==
        bsp.events);
}

TEST_CASE("barrier: looking at some is between looking at none and at all") {
  const Outcome asp = simulate(barrier({}));
  const Outcome some =
      simulate(barrier({"strategy.schedule.barrier=pbsp", "strategy.schedule.barrier_sample=2"}));
  const Outcome bsp = simulate(barrier({"strategy.schedule.barrier=bsp"}));
  CHECK(asp.seconds < some.seconds);
  CHECK(some.seconds < bsp.seconds);
  CHECK(spread(some) > 1);
  CHECK(spread(some) < spread(asp));
}

TEST_CASE("barrier: clients that drop out bring no run to a standstill") {
  for (const char* kind : {"bsp", "ssp", "pbsp", "pssp"}) {
    CAPTURE(kind);
    const Outcome outcome = simulate(
        barrier({std::string("strategy.schedule.barrier=") + kind, "simulation.dropout.probability=0.4"}));
    CHECK(outcome.rounds.size() == 12);
    CHECK(outcome.count("client.dropped") > 0);
  }
}
