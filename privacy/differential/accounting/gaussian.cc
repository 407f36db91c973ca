#include "privacy/differential/accounting/gaussian.h"

#include <algorithm>
#include <cmath>

#include "privacy/differential/accounting/loss/sampled_loss.h"
#include "privacy/differential/accounting/numeric/normal.h"
#include "privacy/differential/accounting/numeric/search.h"

namespace fedge::privacy {
namespace {

// Pr[Z > a] - e^epsilon Pr[Z > b]. Adds the logarithms of the second product's factors: beyond epsilon = 700,
// e^epsilon alone overflows, but the product does not.
double hockey_stick(double above_a, double epsilon, double b) {
  return std::max(0.0, above_a - std::exp(epsilon + log_normal_below(-b)));
}

// The x at which the loss log(P / Q) of a replaced client reaches epsilon. It solves (1-q) + q y t =
// e^epsilon ((1-q) + q y / t) with t = e^(x / s^2), y = e^(-1 / 2s^2): t = h + sqrt(h^2 + e^epsilon).
double replace_boundary(double q, double variance, double epsilon) {
  const double log_h = std::log(0.5 * (1 - q) * std::expm1(epsilon) / q) + 0.5 / variance - 0.5 * epsilon;
  const double log_t = log_h > 300 ? log_h + std::log(2) : std::asinh(std::exp(log_h));
  return variance * (0.5 * epsilon + log_t);
}

// The x at which the loss of a removed client reaches `loss`; minus infinity if the loss is higher
// everywhere.
double sampled_boundary(double q, double variance, double loss) {
  return variance * unsampled_loss(q, loss) + 0.5;
}

}  // namespace

double sampled_gaussian_delta(const SampledGaussian& step, double epsilon, Neighbours neighbours) {
  const double q = step.sampling_rate;
  const double s = step.noise_multiplier;
  if (q == 0) return 0;
  if (s == 0) return q;
  if (std::isinf(s)) return 0;
  const auto above = [&](double x, double center) { return normal_above((x - center) / s); };
  if (neighbours == Neighbours::kReplace) {
    const double x = replace_boundary(q, s * s, epsilon);
    const double p = (1 - q) * above(x, 0) + q * above(x, 1);
    return std::max(0.0, p - std::exp(epsilon) * ((1 - q) * above(x, 0) + q * above(x, -1)));
  }
  if (neighbours == Neighbours::kRemove) {
    const double x = sampled_boundary(q, s * s, epsilon);
    return hockey_stick((1 - q) * above(x, 0) + q * above(x, 1), epsilon, x / s);
  }
  const double x = sampled_boundary(q, s * s, -epsilon);
  const double sampled = std::exp(epsilon + log_normal_below((x - 1) / s));
  return std::max(0.0, -std::expm1(epsilon + std::log1p(-q)) * normal_above(-x / s) - q * sampled);
}

double sampled_gaussian_delta(const SampledGaussian& step, double epsilon) {
  return std::max(sampled_gaussian_delta(step, epsilon, Neighbours::kRemove),
                  sampled_gaussian_delta(step, epsilon, Neighbours::kAdd));
}

double sampled_gaussian_epsilon(const SampledGaussian& step, double delta) {
  return least_argument([&](double epsilon) { return sampled_gaussian_delta(step, epsilon) <= delta; });
}

}  // namespace fedge::privacy
