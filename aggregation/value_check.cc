#include "aggregation/value_check.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <string>

#include "aggregation/kernels/fold.h"
#include "core/text.h"

namespace fedge::aggregation {
Result<void> check_values(const ParameterLayout& layout, const FixedPoint& format, const PackedPiece& piece) {
  const std::int32_t limit = limit_bits(format.max_abs);
  if (fold_kernels().front().max_magnitude(piece.values.data(), piece.values.size()) <= limit) return {};
  const auto bad = std::find_if(piece.values.begin(), piece.values.end(), [&](float value) {
    return (std::bit_cast<std::int32_t>(value) & 0x7fffffff) > limit;
  });
  const std::size_t position = piece.first + static_cast<std::size_t>(bad - piece.values.begin());
  return invalid("parameter " + layout.describe(piece.coverage->parameter_at(position)) + " is " +
                 number_text(*bad) + "; the values of an update must be finite and at most " +
                 number_text(format.max_abs) + " in absolute value (strategy.max_abs)");
}

double sum_of_squares(std::span<const float> values) {
  constexpr std::size_t kLanes = 8;  // independent sums hide the latency of additions
  std::array<double, kLanes> sums{};
  std::size_t i = 0;
  for (; i + kLanes <= values.size(); i += kLanes)
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      const auto value = static_cast<double>(values[i + lane]);
      sums[lane] += value * value;
    }
  for (std::size_t lane = 0; i < values.size(); ++i, ++lane) {
    const auto value = static_cast<double>(values[i]);
    sums[lane] += value * value;
  }
  double total = 0;
  for (const double sum : sums) total += sum;
  return total;
}

}  // namespace fedge::aggregation
