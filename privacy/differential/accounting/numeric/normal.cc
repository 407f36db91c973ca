#include "privacy/differential/accounting/numeric/normal.h"

#include <cmath>
#include <numbers>

namespace fedge::privacy {
namespace {

constexpr double kSqrtHalf = 1 / std::numbers::sqrt2;
const double kLogSqrtTwoPi = 0.5 * std::log(2 * std::numbers::pi);

// Below this: Mills' ratio as an asymptotic series (Abramowitz and Stegun 26.2.12). At -25 the first omitted
// term is below 2e-13, and the logarithm is about -316.
constexpr double kFarOut = -25;

double log_far_below(double z) {
  const double w = 1 / (z * z);
  const double series = 1 - w * (1 - 3 * w * (1 - 5 * w * (1 - 7 * w * (1 - 9 * w))));
  return -0.5 * z * z - kLogSqrtTwoPi - std::log(-z) + std::log(series);
}

}  // namespace

double normal_above(double z) { return 0.5 * std::erfc(z * kSqrtHalf); }

double log_normal_below(double z) {
  if (z > kFarOut) return z > 5 ? std::log1p(-normal_above(z)) : std::log(normal_above(-z));
  return std::isinf(z) ? z : log_far_below(z);
}

double normal_between(double from, double to) {
  const double width = to - from;
  const double middle = 0.5 * (from + to);
  // On a short interval the difference of two nearly equal numbers would lose precision. Integrates the
  // Taylor series of the density around the middle; the first omitted term is below width^6 (1 + |z|)^6 /
  // 322560.
  if (width * (1 + std::abs(middle)) < 0.03) {
    const double m = middle * middle;
    const double w = width * width;
    const double series = 1 + w * ((m - 1) / 24 + w * ((m - 6) * m + 3) / 1920);
    return std::exp(-0.5 * m - kLogSqrtTwoPi) * width * series;
  }
  return middle > 0 ? normal_above(from) - normal_above(to) : normal_above(-to) - normal_above(-from);
}

}  // namespace fedge::privacy
