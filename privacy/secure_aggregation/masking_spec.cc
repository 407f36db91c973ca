#include "privacy/secure_aggregation/masking_spec.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "core/text.h"

namespace fedge::privacy {
namespace {

constexpr const char* kMaskingSection = "masking";
constexpr std::int64_t kMostWeight = std::int64_t{1} << 53;
// Minimum number of steps between 0 and max_abs.
constexpr double kSteps = 256;

// Refuses a grid so coarse that the noise would cost more privacy than the client accounts for.
void check_grid(const MaskingSpec& spec, config::Reader& section) {
  const auto too_coarse = [&](const std::string& what, double units, double least) {
    section.fail("fraction_bits", "is too coarse for noise: " + what + " is " + number_text(units) +
                                      " units of the sums, but must be at least " + number_text(least));
  };
  const double norm = spec.norm_units();
  const double deviation = norm * spec.noise_multiplier;
  if (norm < kAccountedGrid)
    too_coarse("clipping_norm", norm, kAccountedGrid);
  else if (deviation < kCoarsestNoise)
    too_coarse("the standard deviation of a client's noise", deviation, kCoarsestNoise);
}

}  // namespace

std::uint64_t MaskingSpec::weight_of(SampleCount samples) const {
  return uniform_weight > 0 ? uniform_weight : std::clamp<std::uint64_t>(samples.value(), 1, max_weight);
}

double MaskingSpec::norm_units() const {
  return clipping_norm * std::ldexp(static_cast<double>(uniform_weight), fraction_bits);
}

config::Table to_table(const MaskingSpec& spec) {
  config::Table table;
  const auto put = [&](const char* key, auto value) {
    table.emplace(key, config::Value{value, kMaskingSection});
  };
  const auto whole = [](auto value) { return static_cast<std::int64_t>(value); };
  put("bits", whole(spec.codec == protocol::Codec::kMasked64 ? 64 : 32));
  put("fraction_bits", whole(spec.fraction_bits));
  put("max_abs", spec.max_abs);
  put("uniform_weight", whole(spec.uniform_weight));
  put("max_weight", whole(spec.max_weight));
  put("clipping_norm", spec.clipping_norm);
  put("noise_multiplier", spec.noise_multiplier);
  put("noise", whole(static_cast<int>(spec.noise)));
  put("max_participations", whole(spec.max_participations));
  put("corrupt", spec.rules.assumptions.corrupt);
  put("dropout", spec.rules.assumptions.dropout);
  put("complete_below", whole(spec.rules.complete_below));
  put("min_clients", whole(spec.rules.min_survivors));
  return table;
}

std::optional<MaskingSpec> read_masking(config::Reader& root) {
  if (!root.has(kMaskingSection)) return std::nullopt;
  MaskingSpec spec;
  config::Reader section = root.section(kMaskingSection);
  const std::int64_t bits = section.integer("bits", {}, {32, 64}, "");
  if (bits != 32 && bits != 64) section.fail("bits", "must be 32 or 64");
  spec.codec = bits == 64 ? protocol::Codec::kMasked64 : protocol::Codec::kMasked32;
  spec.fraction_bits = static_cast<int>(section.integer("fraction_bits", {}, {-64, 64}, ""));
  spec.max_abs = section.number("max_abs", {}, {1e-30, 1e30}, "");
  spec.uniform_weight =
      static_cast<std::uint64_t>(section.integer("uniform_weight", {}, {0, kMostWeight}, ""));
  spec.max_weight = static_cast<std::uint64_t>(section.integer("max_weight", {}, {1, kMostWeight}, ""));
  spec.clipping_norm = section.number("clipping_norm", 0, {0, 1e30}, "");
  spec.noise_multiplier = section.number("noise_multiplier", 0, {0, 1e9}, "");
  spec.noise = static_cast<NoiseKind>(section.integer("noise", 0, {0, 1}, ""));
  spec.max_participations =
      static_cast<std::uint32_t>(section.integer("max_participations", 0, {0, 1'000'000}, ""));
  spec.rules.assumptions.corrupt = section.number("corrupt", {}, {0, 0.99}, "");
  spec.rules.assumptions.dropout = section.number("dropout", {}, {0, 0.99}, "");
  spec.rules.complete_below =
      static_cast<std::uint32_t>(section.integer("complete_below", {}, {0, 1025}, ""));
  spec.rules.min_survivors = static_cast<std::uint32_t>(section.integer("min_clients", {}, {2, 65536}, ""));
  if (spec.noise_multiplier > 0 &&
      (spec.clipping_norm == 0 || spec.uniform_weight == 0 || spec.max_participations == 0))
    section.fail("noise_multiplier", "requires clipping_norm, uniform_weight and max_participations");
  else if (spec.noise_multiplier > 0)
    check_grid(spec, section);
  root.adopt(section);
  return spec;
}

std::optional<int> fraction_bits_of(std::size_t updates, std::uint64_t max_weight, double max_abs) {
  // Each contribution is at most max_abs * weight * 2^bits, plus one for rounding up.
  const double room = (std::ldexp(1, 31) - 1) / static_cast<double>(updates) - 1;
  const double largest = max_abs * static_cast<double>(max_weight);
  if (room < 1) return std::nullopt;
  const int bits = static_cast<int>(std::floor(std::log2(room / largest)));
  if (std::ldexp(largest, bits) > room || std::ldexp(max_abs, bits) < kSteps) return std::nullopt;
  return bits;
}

}  // namespace fedge::privacy
