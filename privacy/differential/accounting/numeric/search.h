// One-dimensional searches for the accountants. Templates, so that the function may be a lambda.
#pragma once

#include <cmath>
#include <limits>

namespace fedge::privacy {

// The least argument >= 0 for which `holds` is true, rounded up by at most a 1e-13 fraction. It must be false
// below it and true from it on. Infinity if it does not hold up to 1e300.
template <class Predicate>
double least_argument(const Predicate& holds) {
  if (holds(0.0)) return 0;
  double low = 0;
  double high = 1;
  while (!holds(high)) {
    if (high > 1e300) return std::numeric_limits<double>::infinity();
    low = high;
    high *= 2;
  }
  if (low == 0) {
    low = high / 2;
    while (low > 1e-300 && holds(low)) {
      high = low;
      low /= 2;
    }
  }
  while (high - low > 1e-13 * high) {
    const double middle = 0.5 * (low + high);
    (holds(middle) ? high : low) = middle;
  }
  return high;
}

struct Minimum {
  double at = 0;
  double value = 0;
};
// Golden-section search for the least value of a function with one valley between `low` and `high`. Each step
// narrows the range by the factor 0.618.
template <class Function>
Minimum golden_section(const Function& f, double low, double high, int steps) {
  constexpr double kRatio = 0.6180339887498949;
  double a = high - kRatio * (high - low);
  double b = low + kRatio * (high - low);
  double fa = f(a);
  double fb = f(b);
  for (int i = 0; i < steps; ++i) {
    if (fa <= fb) {
      high = b;
      b = a;
      fb = fa;
      a = high - kRatio * (high - low);
      fa = f(a);
    } else {
      low = a;
      a = b;
      fa = fb;
      b = low + kRatio * (high - low);
      fb = f(b);
    }
  }
  return fa <= fb ? Minimum{a, fa} : Minimum{b, fb};
}

}  // namespace fedge::privacy
