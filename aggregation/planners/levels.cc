#include "aggregation/planners/levels.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numeric>
#include <span>
#include <string>
#include <utility>

#include "core/check.h"

namespace fedge::aggregation {
namespace {

constexpr std::uint32_t kMaxDenominator = 1000;
constexpr std::uint8_t kUnknown = 255;
static_assert(kMaxLevels < kUnknown);
constexpr double kMinShare = 1.0 / kMaxDenominator;

std::string text(double value) {
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, "%.12g", value);
  return buffer;
}

}  // namespace

void read_population(config::Reader& section, const std::string& key, const std::vector<double>& even,
                     Levels& levels) {
  levels.declared =
      section.choice("capability", {"drawn", "declared"}, 0,
                     "How a client gets its level.\ndrawn: at random, from the run's seed.\ndeclared: the "
                     "largest level up to the value of `fedge-client run --capability` or, in a simulation, "
                     "of simulation.device.capabilities; if there is none, the smallest level. Ranks are "
                     "compared as fractions of the highest rank.") == 1;
  if (levels.declared && section.has("fractions"))
    section.fail("fractions",
                 "has no effect with capability = \"declared\", because each client declares its capability",
                 {section.path() + ".capability"});
  levels.fractions = section.numbers("fractions", even, {0.0, 1.0},
                                     "Fraction of the clients at each level. The sum must be 1. The levels "
                                     "are drawn once from the run's seed.");
  if (!levels.declared && levels.fractions.size() != levels.shares.size())
    section.fail(section.has("fractions") ? "fractions" : key,
                 "there are " + std::to_string(levels.shares.size()) + " " + key + " and " +
                     std::to_string(levels.fractions.size()) +
                     " fractions; the two lists must have the same length",
                 {section.path() + "." + key, section.path() + ".fractions", section.path() + ".capability"});
  const double sum = std::accumulate(levels.fractions.begin(), levels.fractions.end(), 0.0);
  if (!(std::abs(sum - 1.0) <= 1e-9))
    section.fail("fractions", "add up to " + text(sum) + "; the sum must be 1");
}

Levels read_levels(config::Reader& section) {
  const Levels defaults;
  Levels levels;
  levels.shares = section.numbers("shares", defaults.shares, {kMinShare, 1.0},
                                  "The levels. Each is the fraction of every layer (or of the width) that a "
                                  "client of this level trains.");
  if (levels.shares.empty() || levels.shares.size() > kMaxLevels)
    section.fail("shares", "lists " + std::to_string(levels.shares.size()) + " levels, expected 1 to " +
                               std::to_string(kMaxLevels));
  read_population(section, "shares", defaults.fractions, levels);
  return levels;
}

bool read_split_output(config::Reader& section) {
  return section.boolean("split_output", false,
                         "Whether the last layer is also divided. If not, every client trains the whole last "
                         "layer. The paper's code divides the last layer only in dense models.");
}

std::vector<std::size_t> level_counts(const std::vector<double>& fractions, std::size_t clients) {
  std::vector<std::size_t> counts;
  std::vector<double> remainders;
  std::size_t left = clients;
  for (const double fraction : fractions) {
    const double exact = fraction * static_cast<double>(clients);
    counts.push_back(static_cast<std::size_t>(exact));
    remainders.push_back(exact - std::floor(exact));
    left -= counts.back();
  }
  std::vector<std::size_t> order(fractions.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return remainders[a] > remainders[b]; });
  for (std::size_t i = 0; i < left; ++i) ++counts[order[i % order.size()]];
  return counts;
}

std::vector<std::uint8_t> assign_levels(const Levels& levels, std::size_t clients, const Rng& run) {
  const std::vector<std::size_t> counts = level_counts(levels.fractions, clients);
  std::vector<std::uint8_t> of_client;
  of_client.reserve(clients);
  for (std::size_t level = 0; level < counts.size(); ++level)
    of_client.insert(of_client.end(), counts[level], static_cast<std::uint8_t>(level));
  run.fork("planner levels").shuffle(std::span(of_client));
  return of_client;
}

Population::Population(const Levels& levels, std::size_t clients, const Rng& run)
    : shares_(levels.shares),
      declared_(levels.declared),
      level_(levels.declared ? std::vector<std::uint8_t>(clients, kUnknown)
                             : assign_levels(levels, clients, run)) {}

std::size_t Population::level(ClientId client) const {
  FEDGE_CHECK(client.value() < level_.size(), "the level of a client that the run does not have");
  const std::uint8_t level = level_[client.value()];
  FEDGE_CHECK(level != kUnknown, "the level of a client that has not said what it can train");
  return level;
}

bool Population::admit(ClientId client, double capability) {
  FEDGE_CHECK(client.value() < level_.size(), "a client that the run does not have");
  if (!declared_) return false;
  const auto smallest = std::min_element(shares_.begin(), shares_.end());
  auto best = smallest;
  for (auto share = shares_.begin(); share != shares_.end(); ++share)
    if (*share <= capability && *share > *best) best = share;
  const auto level = static_cast<std::uint8_t>(best - shares_.begin());
  return std::exchange(level_[client.value()], level) != level;
}

Result<Fraction> exact_fraction(double value) {
  if (value > 0 && value <= 1) {
    for (std::uint32_t denominator = 1; denominator <= kMaxDenominator; ++denominator) {
      const double numerator = std::round(value * denominator);
      // Division rounds correctly, so a decimal equals its fraction bit by bit.
      if (numerator / denominator == value)
        return Fraction{static_cast<std::uint32_t>(numerator), denominator};
    }
  }
  return invalid(text(value) + " is not a fraction between 0 and 1 with a denominator of at most " +
                 std::to_string(kMaxDenominator));
}

}  // namespace fedge::aggregation
