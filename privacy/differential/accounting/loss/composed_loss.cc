#include "privacy/differential/accounting/loss/composed_loss.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "privacy/differential/accounting/loss/fft.h"
#include "privacy/differential/accounting/numeric/infinity.h"
#include "privacy/differential/accounting/numeric/log_sum.h"

namespace fedge::privacy {
namespace {

using Complex = std::complex<double>;

constexpr double kMostRounding = 5e-7;  // rounding's largest fraction of delta in a tight epsilon

}  // namespace

StepSpectrum make_spectrum(const NoisyStep& step, Direction direction, double tail, const Plan& plan) {
  const LossRange range = loss_range(step, direction, tail);
  const LossGrid grid = make_loss_grid(step, direction, range, plan.spacing);
  LogSum sum;
  LogSum steeper;
  std::vector<double> tilted(plan.points, 0.0);
  std::vector<double> exponents(grid.log_masses.size());
  for (std::size_t j = 0; j < exponents.size(); ++j) {
    const std::int64_t index = grid.first + static_cast<std::int64_t>(j);
    const double loss = static_cast<double>(index) * grid.spacing;
    exponents[j] = grid.log_masses[j] + plan.tilt * loss;
    sum.add(exponents[j]);
    steeper.add(grid.log_masses[j] + plan.steeper * loss);
  }
  StepSpectrum result{.polar = {},
                      .log_sum = sum.log(),
                      .log_steeper = steeper.log(),
                      .log_finite = std::log1p(-grid.infinite)};
  // Indices wrap modulo the window's size: mass from outside the window is added inside.
  for (std::size_t j = 0; j < exponents.size(); ++j)
    tilted[static_cast<std::size_t>(grid.first + static_cast<std::int64_t>(j)) % plan.points] +=
        std::exp(exponents[j] - result.log_sum);
  result.polar = real_spectrum(tilted);
  const double error = fourier_error(plan.points);
  for (Complex& entry : result.polar) entry = {std::log(std::max(std::abs(entry), error)), std::arg(entry)};
  return result;
}

ComposedLoss::ComposedLoss(std::span<const Factor> factors, const Plan& plan)
    : plan_(plan),
      first_(static_cast<std::int64_t>(std::floor(plan.low / plan.spacing))),
      spectrum_(plan.points / 2 + 1, {0, 0}),
      log_error_(plan.points / 2 + 1, -kInfinity) {
  double count = 0;
  for (const Factor& factor : factors) {
    raise(factor.spectrum, factor.count);
    count += factor.count;
  }
  finish(count);
}

double ComposedLoss::delta(double epsilon) const {
  if (epsilon < loss_at(begin_)) return 1;
  const auto i = static_cast<std::int64_t>(std::floor(epsilon / plan_.spacing)) + 1 - first_;
  return delta_in_cell(static_cast<std::size_t>(std::max(std::int64_t{0}, i)), epsilon);
}

double ComposedLoss::epsilon(double most) const {
  if (delta_in_cell(plan_.points, 0) > most) return kInfinity;
  std::size_t good = plan_.points;  // delta is small enough from its loss on
  std::size_t bad = begin_;
  while (good > bad) {
    const std::size_t middle = (good + bad) / 2;
    if (delta_in_cell(middle + 1, loss_at(middle)) <= most)
      good = middle;
    else
      bad = middle + 1;
  }
  // Between the losses of good - 1 and good, delta is linear in e^epsilon.
  if (good == begin_) return std::max(0.0, loss_at(good));
  const double wanted = (most / slack_ - infinite_) * std::exp(-log_scale_);
  const double inside = center_ + std::log((above_[good] - wanted) / above_neighbour_[good]);
  if (!(inside < loss_at(good))) return std::max(0.0, loss_at(good));
  return std::max({0.0, inside * (1 + 1e-15), loss_at(good - 1)});
}

bool ComposedLoss::is_tight(double epsilon, double most) const {
  if (epsilon == 0) return loss_at(begin_) <= 0;
  if (!(epsilon > loss_at(begin_) && epsilon < loss_at(plan_.points - 1))) return false;
  // The rounding bound is added, untilted, to every mass from epsilon on: a geometric series.
  const double rounding = noise_ * std::exp(log_scale_ - plan_.tilt * (epsilon - center_)) /
                          -std::expm1(-plan_.tilt * plan_.spacing);
  return rounding <= kMostRounding * most;
}

double ComposedLoss::loss_at(std::size_t i) const {
  return static_cast<double>(first_ + static_cast<std::int64_t>(i)) * plan_.spacing;
}

// delta at an epsilon between the losses of points i - 1 and i.
double ComposedLoss::delta_in_cell(std::size_t i, double epsilon) const {
  if (i >= plan_.points) return std::min(1.0, slack_ * infinite_);
  const double excess = above_[i] - std::exp(epsilon - center_) * above_neighbour_[i];
  return std::min(1.0, slack_ * (std::exp(log_scale_) * std::max(0.0, excess) + infinite_));
}

// Multiplies spectrum_ by step^count and updates the bound of the rounding error: count times the transform's
// error times size^(count - 1).
void ComposedLoss::raise(const StepSpectrum& step, double count) {
  const double error = fourier_error(plan_.points);
  for (std::size_t k = 0; k < spectrum_.size(); ++k) {
    const double log_size = step.polar[k].real();
    const double log_relative = std::log(count * error) - log_size;
    log_error_[k] =
        std::max(log_error_[k], log_relative) + std::log1p(std::exp(-std::abs(log_error_[k] - log_relative)));
    spectrum_[k] +=
        Complex{count * log_size, std::remainder(count * step.polar[k].imag(), 2 * std::numbers::pi)};
  }
  log_sum_ += count * step.log_sum;
  log_steeper_ += count * step.log_steeper;
  log_finite_ += count * step.log_finite;
}

void ComposedLoss::finish(double count) {
  const double points = static_cast<double>(plan_.points);
  double noise = 0;
  double size = 0;
  for (std::size_t k = 0; k < spectrum_.size(); ++k) {
    const double log_size = spectrum_[k].real();
    noise += std::exp(std::min(0.0, log_size + log_error_[k]));
    size += std::exp(log_size);
    spectrum_[k] = std::polar(std::exp(log_size), spectrum_[k].imag());
  }
  noise_ = 2 * (noise + fourier_error(plan_.points) * size) / points;
  const std::vector<double> masses = from_real_spectrum(spectrum_);
  // Chernoff's bound of the mass above the window, valid for any tilt.
  const double escaped = std::exp(log_steeper_ - plan_.steeper * loss_at(plan_.points - 1));
  infinite_ = escaped - std::expm1(log_finite_);
  slack_ = 1 + 1e-12 + 1e-14 * count;
  sum_up(masses);
}

// Sums from the top the masses, and the masses times e^-loss, untilted and relative to the center.
void ComposedLoss::sum_up(const std::vector<double>& masses) {
  center_ = plan_.center;
  log_scale_ = log_sum_ - plan_.tilt * center_;
  above_.assign(plan_.points + 1, 0.0);
  above_neighbour_.assign(plan_.points + 1, 0.0);
  begin_ = plan_.points;
  while (begin_ > 0) {
    const std::size_t i = begin_ - 1;
    const double from_center = loss_at(i) - center_;
    if (loss_at(i) < -plan_.spacing || -(plan_.tilt + 1) * from_center > 600) break;
    const auto place = static_cast<std::size_t>(first_ + static_cast<std::int64_t>(i)) % plan_.points;
    const double mass = (std::max(0.0, masses[place]) + noise_) * std::exp(-plan_.tilt * from_center);
    above_[i] = above_[begin_] + mass;
    above_neighbour_[i] = above_neighbour_[begin_] + mass * std::exp(-from_center);
    begin_ = i;
  }
}

}  // namespace fedge::privacy
