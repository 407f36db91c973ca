#include "aggregation/spec.h"

#include <cstdint>

#include "aggregation/samplers/sampler.h"

namespace fedge::aggregation {
namespace {

// A format that leaves less than this to the sum of all weights in a round is taken for a mistake.
constexpr std::uint64_t kMinTotalWeight = std::uint64_t{1} << 20;

FixedPoint read_fixed_point(config::Reader& section) {
  const FixedPoint defaults;
  FixedPoint format;
  format.fraction_bits =
      static_cast<int>(section.integer("fraction_bits", defaults.fraction_bits, {1, 50},
                                       "Updates are summed as integers in units of 2^-fraction_bits."));
  format.max_abs = section.number("max_abs", defaults.max_abs, {1e-6, 1e9},
                                  "Largest size of a value in an update; one with a larger is refused.");
  const std::uint64_t total = format.max_total_weight().value();
  if (total < kMinTotalWeight)
    section.fail(section.has("max_abs") ? "max_abs" : "fraction_bits",
                 "with fraction_bits = " + std::to_string(format.fraction_bits) +
                     " the sums of a round hold only " + std::to_string(total) +
                     " samples; max_abs * 2^fraction_bits must be below 2^43");
  return format;
}

}  // namespace

SamplingSpec read_sampling(config::Reader& root) {
  const SamplingSpec defaults;
  SamplingSpec spec;
  config::Reader section = root.section("sampling");
  const std::vector<std::string> kinds = sampler_kinds();
  spec.kind = kinds[section.choice("kind", kinds, 0, "How clients are chosen for a round.")];
  spec.clients_per_round = static_cast<std::size_t>(
      section.integer("clients_per_round", static_cast<std::int64_t>(defaults.clients_per_round),
                      {1, 1'000'000}, "Answers that complete a round."));
  spec.over_selection =
      section.number("over_selection", defaults.over_selection, {1.0, 10.0},
                     "Ask this many times clients_per_round; the slowest are not waited for.");
  spec.min_available = static_cast<std::size_t>(
      section.integer("min_available", static_cast<std::int64_t>(defaults.min_available), {1, 1'000'000},
                      "Connected clients without which no round begins."));
  root.adopt(section);
  return spec;
}

StrategySpec read_strategy(config::Reader& root) {
  const StrategySpec defaults;
  StrategySpec spec;
  config::Reader section = root.section("strategy");
  spec.kind = strategy_kinds()[section.choice("kind", strategy_kinds(), 0, "How updates move the model.")];
  spec.server_learning_rate =
      section.number("server_learning_rate", defaults.server_learning_rate, {1e-6, 1e3},
                     "The model moves by this times the mean of the updates.");
  spec.fixed_point = read_fixed_point(section);
  root.adopt(section);
  return spec;
}

const std::vector<std::string>& strategy_kinds() {
  static const std::vector<std::string> kinds = {"fedavg"};
  return kinds;
}

}  // namespace fedge::aggregation
