#include "aggregation/samplers/energy_aware.h"

#include <doctest/doctest.h>

#include <cmath>
#include <map>

namespace fedge::aggregation {
namespace {

std::vector<Candidate> battery_clients(std::uint32_t count) {
  std::vector<Candidate> all;
  for (std::uint32_t i = 0; i < count; ++i) all.push_back({ClientId(i), SampleCount(10)});
  return all;
}

// How often each client is selected in this many rounds.
std::map<std::uint32_t, double> frequencies(EnergyAwareSampler& sampler, std::uint32_t clients,
                                            std::size_t count, std::uint32_t rounds) {
  const auto all = battery_clients(clients);
  std::map<std::uint32_t, double> selected;
  for (std::uint32_t round = 1; round <= rounds; ++round)
    for (const Selected& choice : sampler.select({.round = RoundNumber(round),
                                  .candidates = all,
                                  .count = count,
                                  .rng = Rng(9).fork("round", round)})) {
      selected[choice.client.value()] += 1.0 / rounds;
      CHECK(choice.inclusion > 0);
      CHECK(choice.inclusion <= 1);
    }
  return selected;
}

bool near(double a, double b) { return std::abs(a - b) < 0.03; }

}  // namespace

TEST_CASE("energy_aware: without reports every client is equally likely") {
  EnergyAwareSampler sampler({});
  const auto often = frequencies(sampler, 8, 2, 4000);
  for (std::uint32_t i = 0; i < 8; ++i) CHECK(near(often.at(i), 0.25));
}

TEST_CASE(
    "energy_aware: likely in proportion to the battery, and inversely to one plus the share of energy") {
  EnergyAwareSampler sampler({});
  sampler.describe(ClientId(0), NodeRecord{.battery = 0.5});
  sampler.remember({.client = ClientId(1), .round = RoundNumber(1), .delivered = true, .joules = 30});
  sampler.remember({.client = ClientId(2), .round = RoundNumber(1), .delivered = true, .joules = 5});
  sampler.remember({.client = ClientId(2), .round = RoundNumber(2), .delivered = true, .joules = 5});
  sampler.remember({.client = ClientId(3), .round = RoundNumber(2)});
  // Median energy 20: shares 1.5 and 0.5; clients without a report count as the median.
  const double w[] = {0.5 / 2, 1 / 2.5, 1 / 1.5, 1 / 2.0};
  const double sum = w[0] + w[1] + w[2] + w[3];
  const auto often = frequencies(sampler, 4, 1, 8000);
  for (std::uint32_t i = 0; i < 4; ++i) CHECK(near(often.at(i), w[i] / sum));
}

TEST_CASE("energy_aware: a client below the minimum is selected only if too few others are there") {
  EnergyAwareSampler sampler({});
  sampler.describe(ClientId(0), NodeRecord{.battery = 0.1});
  sampler.describe(ClientId(1), NodeRecord{.battery = 0.0});
  CHECK(frequencies(sampler, 6, 4, 500).count(0) == 0);
  CHECK(frequencies(sampler, 6, 4, 500).count(1) == 0);
  const auto five = frequencies(sampler, 6, 5, 500);
  CHECK(five.at(0) > 0.99);
  CHECK(five.count(1) == 0);
  CHECK(frequencies(sampler, 6, 6, 5).at(1) == doctest::Approx(1));
}

TEST_CASE("energy_aware: one lie about energy does not move the others") {
  const auto often = [](double lie) {
    EnergyAwareSampler sampler({});
    for (std::uint32_t i = 0; i < 6; ++i)
      sampler.remember({.client = ClientId(i),
                        .round = RoundNumber(1),
                        .delivered = true,
                        .joules = i == 0 ? lie : 10.0 + i});
    sampler.remember({.client = ClientId(6), .round = RoundNumber(1), .delivered = true, .joules = NAN});
    return frequencies(sampler, 7, 2, 4000);
  };
  const auto honest = often(12);
  for (const double lie : {0.0, 1e12}) {
    const auto liar = often(lie);
    const double rest = lie > 1 ? 2.0 / 6 : 2.0 / 7;
    for (std::uint32_t i = 1; i < 7; ++i) {
      CHECK(liar.at(i) > 0.6 * rest);
      CHECK(liar.at(i) < 1.4 * rest);
    }
  }
  CHECK(honest.at(0) > 0.2);
}

}  // namespace fedge::aggregation
