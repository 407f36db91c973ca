#include "privacy/differential/accounting/rdp_curves.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "privacy/differential/accounting/numeric/infinity.h"
#include "privacy/differential/accounting/numeric/log_sum.h"

namespace fedge::privacy {
namespace {

// Limits of the orders: a sum has as many terms as the order; for fixed cohorts each is a quadrature.
constexpr double kMostWholeOrder = 8192;
constexpr double kMostCohortOrder = 512;
constexpr double kMostQuadraturePoints = 1e5;  // per quadrature: some milliseconds

bool is_whole(double order) { return order == std::floor(order); }

// log of sum over k from 2 to n of C(n, k) (1-q)^(n-k) q^k (e^g(k) - 1), for g > 0, 0 < q < 1. This is the
// excess of a divergence over 1: without the terms k = 0 and 1 and with the -1, small values keep their
// precision.
template <class Exponent>
double log_binomial_excess(double n, double q, const Exponent& g) {
  LogSum sum;
  const double log_odds = std::log(q) - std::log1p(-q);
  double log_weight = n * std::log1p(-q);
  for (double k = 1; k <= n; ++k) {
    log_weight += std::log((n - k + 1) / k) + log_odds;
    if (k >= 2) sum.add(log_weight + log_exp_minus_one(g(k)));
  }
  return sum.log();
}

// log of (1 + u)^a - 1 - a u, which is positive for a > 1, u > -1. Uses a series where the difference would
// be lost to rounding.
double log_convexity_gap(double a, double u) {
  if (std::abs(u) * a < 0.1) {
    double term = a * u;
    double sum = 0;
    for (int k = 2; k < 14; ++k) {
      term *= (a - k + 1) / k * u;
      sum += term;
    }
    return std::log(sum);
  }
  const double power = a * std::log1p(u);
  return power > 40 ? power : std::log(std::expm1(power) - a * u);
}

// log of the excess over 1 of E[(1-q + q e^((2x-1)/2s^2))^a], x ~ N(0, s^2): E[(1+u)^a - 1 - a u].
// The trapezoid rule converges exponentially: the integrand is analytic up to pi s^2 away from the real line.
double trapezoid_step(double s) { return s * std::min(0.25, 0.125 * s); }

double log_sampled_excess(double q, double s, double a) {
  const double step = trapezoid_step(s);
  const double from = -9 * s - 1;
  const double to = a + 12 * s;
  const auto points = static_cast<long>(std::ceil((to - from) / step));
  LogSum sum;
  for (long i = 0; i <= points; ++i) {
    const double x = from + static_cast<double>(i) * step;
    const double exponent = (2 * x - 1) / (2 * s * s);
    const double log_density = -0.5 * (x / s) * (x / s);
    // Far to the right, 1 + u alone would overflow.
    const double log_gap =
        exponent > 600 ? a * (std::log(q) + exponent) : log_convexity_gap(a, q * std::expm1(exponent));
    sum.add(log_density + log_gap);
  }
  return sum.log() + std::log(step / s) - 0.5 * std::log(2 * std::numbers::pi);
}

// log of E[(e^((2x-1)/2s^2) - 1)^l], x ~ N(0, s^2), l even. The expectation is the l-th forward difference of
// e^(x (x-1) / 2s^2) at 0, whose definition as an alternating sum would cancel.
double log_forward_difference(double s, double l) {
  const double step = s * std::min(0.125, 0.125 * s);
  const auto points = static_cast<long>(std::ceil((l + 24 * s) / step));
  LogSum sum;
  for (long i = 0; i <= points; ++i) {
    const double x = -12 * s + static_cast<double>(i) * step;
    const double exponent = (2 * x - 1) / (2 * s * s);
    const double log_difference = exponent > 30 ? exponent : std::log(std::abs(std::expm1(exponent)));
    sum.add(-0.5 * (x / s) * (x / s) + l * log_difference);
  }
  return sum.log() + std::log(step / s) - 0.5 * std::log(2 * std::numbers::pi);
}

// log of the factor of q^j C(order, j) in theorem 27.
double log_cohort_term(double s, double j) {
  const double power = j * (j - 1) / (2 * s * s);
  if (j == 2) return std::min(std::log(4) + log_exp_minus_one(power), std::log(2) + power);
  // By Minkowski's inequality, the difference is above (1 - e^(-(j-2) / 2s^2))^j times the power. If that
  // factor is near 1, the other bound is the lower one.
  if (j * std::log1p(-std::exp(-(j - 2) / (2 * s * s))) > -0.1) return std::log(2) + power;
  const double low = log_forward_difference(s, 2 * std::floor(j / 2));
  const double high = is_whole(j / 2) ? low : log_forward_difference(s, 2 * std::ceil(j / 2));
  return std::min(std::log(4) + 0.5 * (low + high), std::log(2) + power);
}

}  // namespace

double gaussian_rdp(double noise_multiplier, double order) {
  return order / (2 * noise_multiplier * noise_multiplier);
}

double sampled_gaussian_rdp(const SampledGaussian& step, double order) {
  const double q = step.sampling_rate;
  const double s = step.noise_multiplier;
  if (q == 0) return 0;
  if (q == 1 || s == 0) return gaussian_rdp(s, order);
  if (std::isinf(s)) return 0;
  const auto whole = [&](double n) {
    return log_one_plus_exp(log_binomial_excess(n, q, [&](double k) { return k * (k - 1) / (2 * s * s); })) /
           (n - 1);
  };
  const bool summable = order <= kMostWholeOrder;
  if (summable && is_whole(order)) return whole(order);
  if (order + 1 < kMostQuadraturePoints * trapezoid_step(s))
    return log_one_plus_exp(log_sampled_excess(q, s, order)) / (order - 1);
  // With almost no noise: the value without sampling, which is never less, or at the next integer order.
  const double unsampled = gaussian_rdp(s, order);
  return summable ? std::min(unsampled, whole(std::ceil(order))) : unsampled;
}

double laplace_rdp(double scale, double order) {
  if (scale == 0) return kInfinity;
  // a/(2a-1) e^((a-1)/b) + (a-1)/(2a-1) e^(-a/b), with the larger exponent factored out.
  const double share = order / (2 * order - 1);
  const double up = (order - 1) / scale;
  if (up < 1) {
    const double excess = share * std::expm1(up) + (1 - share) * std::expm1(-order / scale);
    return std::log1p(excess) / (order - 1);
  }
  return (up + std::log(share + (1 - share) * std::exp(-order / scale - up))) / (order - 1);
}

double sampled_rdp(const RdpCurve& base, double sampling_rate, double order) {
  if (sampling_rate == 0) return 0;
  if (sampling_rate == 1) return base(order);
  const double n = std::max(2.0, std::ceil(order));
  if (n > kMostWholeOrder) return kInfinity;
  const double log_excess = log_binomial_excess(
      n, sampling_rate, [&](double k) { return (k - 1) * base(k) + (k > 2 ? std::log(3) : 0); });
  return log_one_plus_exp(log_excess) / (n - 1);
}

double fixed_cohort_gaussian_rdp(const SampledGaussian& step, double order) {
  const double s = step.noise_multiplier;
  if (step.sampling_rate == 0) return 0;
  if (step.sampling_rate == 1 || s == 0) return gaussian_rdp(s, order);
  const double n = std::max(2.0, std::ceil(order));
  if (n > kMostCohortOrder) return kInfinity;
  LogSum sum;
  double log_choose = 0;
  for (double j = 1; j <= n; ++j) {
    log_choose += std::log((n - j + 1) / j) + std::log(step.sampling_rate);
    if (j >= 2) sum.add(log_choose + log_cohort_term(s, j));
  }
  return log_one_plus_exp(sum.log()) / (n - 1);
}

}  // namespace fedge::privacy
