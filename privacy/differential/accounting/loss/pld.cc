#include "privacy/differential/accounting/loss/pld.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <numbers>
#include <vector>

#include "privacy/differential/accounting/loss/fft.h"
#include "privacy/differential/accounting/loss/pld_plan.h"
#include "privacy/differential/accounting/numeric/infinity.h"
#include "privacy/differential/accounting/numeric/log_sum.h"

namespace fedge::privacy {
namespace {

using Complex = std::complex<double>;

constexpr std::size_t kMostGridPoints = std::size_t{1} << 20;
constexpr std::size_t kRoughPoints = std::size_t{1} << 14;
constexpr int kMostAttempts = 12;        // at a rough answer
constexpr double kLogDeltaError = 5e-8;  // what the grid's spacing may add to log delta
constexpr double kTailShare = 1e-9;      // of delta, what all steps may lose to their infinite losses

// Of all steps together: what a delta may be wrong by before anything is known of it.
constexpr double kLeastTail = 1e-40;
// Below e^this a delta is beyond doubles, and reported as that.
constexpr double kLeastLogDelta = -690;

// The composed loss on the window, untilted when asked.
class ComposedLoss {
 public:
  ComposedLoss(const Composition& composition, const Plan& plan)
      : plan_(plan), first_(static_cast<std::int64_t>(std::floor(plan.low / plan.spacing))) {
    for (const RepeatedStep& each : composition.steps) multiply(each, composition);
    finish(composition.count);
  }

  double delta(double epsilon) const {
    if (epsilon < loss_at(begin_)) return 1;
    const auto i = static_cast<std::int64_t>(std::floor(epsilon / plan_.spacing)) + 1 - first_;
    return delta_in_cell(static_cast<std::size_t>(std::max(std::int64_t{0}, i)), epsilon);
  }

  // Least epsilon >= 0 on the window that has at most this delta.
  double epsilon(double most) const {
    if (delta_in_cell(plan_.points, 0) > most) return kInfinity;
    std::size_t good = plan_.points;  // from its loss on delta is small enough
    std::size_t bad = begin_;
    while (good > bad) {
      const std::size_t middle = (good + bad) / 2;
      if (delta_in_cell(middle + 1, loss_at(middle)) <= most)
        good = middle;
      else
        bad = middle + 1;
    }
    // Between the losses of good - 1 and good it is linear in e^epsilon.
    if (good == begin_) return std::max(0.0, loss_at(good));
    const double wanted = (most / slack_ - infinite_) * std::exp(-log_scale_);
    const double inside = center_ + std::log((above_[good] - wanted) / above_neighbour_[good]);
    if (!(inside < loss_at(good))) return std::max(0.0, loss_at(good));
    return std::max({0.0, inside * (1 + 1e-15), loss_at(good - 1)});
  }

 private:
  double loss_at(std::size_t i) const {
    return static_cast<double>(first_ + static_cast<std::int64_t>(i)) * plan_.spacing;
  }

  // delta at an epsilon between the losses of i - 1 and i.
  double delta_in_cell(std::size_t i, double epsilon) const {
    if (i >= plan_.points) return std::min(1.0, slack_ * infinite_);
    const double excess = above_[i] - std::exp(epsilon - center_) * above_neighbour_[i];
    return std::min(1.0, slack_ * (std::exp(log_scale_) * std::max(0.0, excess) + infinite_));
  }

  void multiply(const RepeatedStep& each, const Composition& composition) {
    const LossRange range = loss_range(each.step, composition.direction, composition.tail);
    const LossGrid grid = make_loss_grid(each.step, composition.direction, range, plan_.spacing);
    LogSum sum;
    LogSum steeper;
    std::vector<double> tilted(plan_.points, 0.0);
    std::vector<double> exponents(grid.log_masses.size());
    for (std::size_t j = 0; j < exponents.size(); ++j) {
      const std::int64_t index = grid.first + static_cast<std::int64_t>(j);
      const double loss = static_cast<double>(index) * grid.spacing;
      exponents[j] = grid.log_masses[j] + plan_.tilt * loss;
      sum.add(exponents[j]);
      steeper.add(grid.log_masses[j] + plan_.steeper * loss);
    }
    const double log_sum = sum.log();
    // Indices are taken modulo the window: what wraps round comes from outside of it.
    for (std::size_t j = 0; j < exponents.size(); ++j)
      tilted[static_cast<std::size_t>(grid.first + static_cast<std::int64_t>(j)) % plan_.points] +=
          std::exp(exponents[j] - log_sum);
    log_sum_ += each.count * log_sum;
    log_steeper_ += each.count * steeper.log();
    log_finite_ += each.count * std::log1p(-grid.infinite);
    raise(real_spectrum(tilted), each.count);
  }

  // spectrum_ *= factor^count, and what the rounding of `factor` can make of that: count times the
  // transform's error times |factor|^(count - 1).
  void raise(std::vector<Complex> factor, double count) {
    const double error = fourier_error(plan_.points);
    if (spectrum_.empty()) {
      spectrum_.assign(factor.size(), {0, 0});
      log_error_.assign(factor.size(), -kInfinity);
    }
    for (std::size_t k = 0; k < factor.size(); ++k) {
      const double log_size = std::log(std::max(std::abs(factor[k]), error));
      const double log_relative = std::log(count * error) - log_size;
      log_error_[k] = std::max(log_error_[k], log_relative) +
                      std::log1p(std::exp(-std::abs(log_error_[k] - log_relative)));
      spectrum_[k] +=
          Complex{count * log_size, std::remainder(count * std::arg(factor[k]), 2 * std::numbers::pi)};
    }
  }

  void finish(double count) {
    const double points = static_cast<double>(plan_.points);
    double noise = 0;
    double size = 0;
    for (std::size_t k = 0; k < spectrum_.size(); ++k) {
      const double log_size = spectrum_[k].real();
      noise += std::exp(std::min(0.0, log_size + log_error_[k]));
      size += std::exp(log_size);
      spectrum_[k] = std::polar(std::exp(log_size), spectrum_[k].imag());
    }
    noise = 2 * (noise + fourier_error(plan_.points) * size) / points;
    const std::vector<double> masses = from_real_spectrum(spectrum_);
    // What lies beyond the window's upper end, whatever the tilt: Chernoff.
    const double escaped = std::exp(log_steeper_ - plan_.steeper * loss_at(plan_.points - 1));
    infinite_ = escaped - std::expm1(log_finite_);
    slack_ = 1 + 1e-12 + 1e-14 * count;
    sum_up(masses, noise);
  }

  // Sums from the top of masses, and of masses times e^-loss, untilted and relative to the center.
  void sum_up(const std::vector<double>& masses, double noise) {
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
      const double mass = (std::max(0.0, masses[place]) + noise) * std::exp(-plan_.tilt * from_center);
      above_[i] = above_[begin_] + mass;
      above_neighbour_[i] = above_neighbour_[begin_] + mass * std::exp(-from_center);
      begin_ = i;
    }
  }

  Plan plan_;
  std::int64_t first_;             // grid index of the window's first point
  std::vector<Complex> spectrum_;  // of the tilted distributions: logarithm of the size, and angle
  std::vector<double> log_error_;  // of each entry, relative to it
  double log_sum_ = 0;             // log E[e^(tilt L)]
  double log_steeper_ = 0;
  double log_finite_ = 0;
  double infinite_ = 0;
  double slack_ = 1;
  double center_ = 0;
  double log_scale_ = 0;
  std::size_t begin_ = 0;  // losses from here on are summed up
  std::vector<double> above_;
  std::vector<double> above_neighbour_;
};

// An upper bound of epsilon in one direction: a rough one first, and if that is above `floor`, a precise one.
double epsilon_in(std::span<const RepeatedStep> steps, double delta, Direction direction, double floor) {
  const Composition composition = make_composition(steps, direction, kTailShare * delta);
  // Chernoff's bound may be far from the truth, and so the window of a plan made for it: it is then moved.
  double rough = std::min(composition.most, chernoff_epsilon(composition, delta * (1 - 2 * kTailShare)));
  for (int i = 0; i < kMostAttempts; ++i) {
    const Plan plan = make_plan(composition, {rough, std::log(delta)}, {1e-4, kRoughPoints});
    const double better = ComposedLoss(composition, plan).epsilon(delta);
    if (!(better < rough)) break;
    const bool close = better > 0.99 * rough;
    rough = better;
    if (close) break;
  }
  if (rough <= floor) return rough;
  const Plan plan = make_plan(composition, {rough, std::log(delta)}, {kLogDeltaError, kMostGridPoints});
  return std::min(rough, ComposedLoss(composition, plan).epsilon(delta));
}

double delta_in(std::span<const RepeatedStep> steps, double epsilon, Direction direction, double floor) {
  const Composition all = make_composition(steps, direction, kLeastTail);
  if (epsilon >= all.most) return kLeastTail;
  double log_delta = std::max(chernoff_log_delta(all, epsilon), kLeastLogDelta);
  for (const Precision& precision :
       {Precision{1e-4, kRoughPoints}, Precision{kLogDeltaError, kMostGridPoints}}) {
    const Composition composition = make_composition(steps, direction, kTailShare * std::exp(log_delta));
    const Plan plan = make_plan(composition, {epsilon, log_delta}, precision);
    const double delta = ComposedLoss(composition, plan).delta(epsilon);
    log_delta = std::max(std::log(delta), kLeastLogDelta);
    if (delta <= floor) break;
  }
  return std::exp(log_delta);
}

}  // namespace

double pld_delta(std::span<const RepeatedStep> steps, double epsilon, Direction direction) {
  return steps.empty() ? 0 : delta_in(steps, epsilon, direction, 0);
}

double pld_delta(std::span<const RepeatedStep> steps, double epsilon) {
  if (steps.empty()) return 0;
  const double remove = delta_in(steps, epsilon, Direction::kRemove, 0);
  return std::max(remove, delta_in(steps, epsilon, Direction::kAdd, remove));
}

double pld_epsilon(std::span<const RepeatedStep> steps, double delta) {
  if (steps.empty()) return 0;
  const double remove = epsilon_in(steps, delta, Direction::kRemove, 0);
  return std::max(remove, epsilon_in(steps, delta, Direction::kAdd, remove));
}

}  // namespace fedge::privacy
