#include "privacy/differential/accounting/pld.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <complex>
#include <limits>
#include <optional>
#include <vector>

#include "privacy/differential/accounting/fft.h"
#include "privacy/differential/accounting/log_sum.h"
#include "privacy/differential/accounting/search.h"

namespace fedge::privacy {
namespace {

using Complex = std::complex<double>;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

constexpr double kCoarsePoints = 4096;  // per step, where only moments are wanted
constexpr std::size_t kFewestPoints = std::size_t{1} << 10;
constexpr std::size_t kMostPoints = std::size_t{1} << 20;
constexpr double kEpsilonError = 2e-7;  // of epsilon, what the grid's spacing may add
constexpr double kDeltaError = 1e-6;    // of delta
constexpr double kTailShare = 1e-9;     // of delta, what all steps may lose to their infinite losses
constexpr double kWindowTail = 1e-18;   // of the tilted distribution, left out on either side

// What is asked: epsilon at a delta, or delta at an epsilon.
struct Question {
  Direction direction = Direction::kRemove;
  std::optional<double> epsilon;
  std::optional<double> delta;
};

struct Moments {
  double log_sum = 0;  // of masses times e^(t loss)
  double mean = 0;     // of the loss under these, normalised
  double variance = 0;
};

Moments moments_of(const LossGrid& grid, double t) {
  LogSum sum;
  for (std::size_t j = 0; j < grid.log_masses.size(); ++j)
    sum.add(grid.log_masses[j] +
            t * grid.spacing * static_cast<double>(grid.first + static_cast<std::int64_t>(j)));
  Moments moments{sum.log(), 0, 0};
  double square = 0;
  const double origin = static_cast<double>(grid.first) * grid.spacing;
  for (std::size_t j = 0; j < grid.log_masses.size(); ++j) {
    const double above = static_cast<double>(j) * grid.spacing;
    const double weight = std::exp(grid.log_masses[j] + t * (origin + above) - moments.log_sum);
    moments.mean += weight * above;
    square += weight * above * above;
  }
  moments.variance = std::max(0.0, square - moments.mean * moments.mean);
  moments.mean += origin;
  return moments;
}

struct RepeatedGrid {
  LossGrid grid;
  double count;
};

// Moments of the sum: logarithms, means and variances add up.
Moments moments_of(std::span<const RepeatedGrid> grids, double t) {
  Moments all;
  for (const RepeatedGrid& each : grids) {
    const Moments one = moments_of(each.grid, t);
    all.log_sum += each.count * one.log_sum;
    all.mean += each.count * one.mean;
    all.variance += each.count * one.variance;
  }
  return all;
}

double total_count(std::span<const RepeatedStep> steps) {
  double total = 0;
  for (const RepeatedStep& each : steps) total += each.count;
  return total;
}

std::vector<RepeatedGrid> coarse_grids(std::span<const RepeatedStep> steps, Direction direction,
                                       double tail) {
  std::vector<RepeatedGrid> grids;
  for (const RepeatedStep& each : steps) {
    const LossRange range = loss_range(each.step, direction, tail);
    const double spacing = (range.high - range.low) / kCoarsePoints;
    grids.push_back({make_loss_grid(each.step, direction, range, spacing), each.count});
  }
  return grids;
}

// How the composition is to be carried out. None of it can make the result too small, only too large.
struct Plan {
  double tilt = 1;     // theta
  double steeper = 1;  // above theta: bounds the mass beyond the window
  double spacing = 1;
  double low = 0;        // the window's lower end
  double tail = 1e-300;  // of each step
  std::size_t points = kFewestPoints;
};

// log delta, or epsilon, that the Renyi divergence of order 1 + t bounds: rdp.h in terms of log E[e^(tL)].
double bound_at(const Question& question, double t, double log_sum) {
  const double log_share = std::log(t / (1 + t));
  if (question.epsilon) return log_sum + t * (log_share - *question.epsilon) - std::log1p(t);
  return log_sum / t + log_share - (std::log(*question.delta) + std::log1p(t)) / t;
}

Minimum best_tilt(const Question& question, std::span<const RepeatedGrid> grids, double spread) {
  double finest = 0;
  for (const RepeatedGrid& each : grids) finest = std::max(finest, each.grid.spacing);
  const double most = std::min(1e3 / spread, 20 / finest);
  const auto bound = [&](double log_t) {
    const double t = std::exp(log_t);
    return bound_at(question, t, moments_of(grids, t).log_sum);
  };
  Minimum best = golden_section(bound, std::log(1e-3 * std::min(most, 1 / spread)), std::log(most), 32);
  best.at = std::exp(best.at);
  return best;
}

// Ends of a window that leaves kWindowTail of the tilted distribution on either side (Chernoff).
struct Window {
  double low = -kInfinity;
  double high = kInfinity;
  double steeper = 1;
};

Window find_window(std::span<const RepeatedGrid> grids, double tilt, const Moments& tilted, double spread) {
  Window window;
  for (double k = 0.5; k <= 32; k *= 2) {
    const double u = k / spread;
    const double above = (moments_of(grids, tilt + u).log_sum - tilted.log_sum - std::log(kWindowTail)) / u;
    const double below = (moments_of(grids, tilt - u).log_sum - tilted.log_sum - std::log(kWindowTail)) / u;
    if (above < window.high) window = {window.low, above, tilt + u};
    window.low = std::max(window.low, -below);
  }
  return window;
}

Plan make_plan(std::span<const RepeatedStep> steps, const Question& question) {
  const double count = total_count(steps);
  Plan plan;
  plan.tail = std::max(1e-290, (question.delta ? kTailShare * *question.delta : 1e-40) / count);
  const auto grids = coarse_grids(steps, question.direction, plan.tail);
  double widest = 0;
  for (const RepeatedGrid& each : grids)
    widest = std::max(widest, each.grid.spacing * static_cast<double>(each.grid.log_masses.size()));
  const auto spread_of = [&](const Moments& moments) {
    return std::max(std::sqrt(moments.variance), 1e-6 * widest);
  };
  const Minimum best = best_tilt(question, grids, spread_of(moments_of(grids, 0)));
  plan.tilt = best.at;
  const Moments tilted = moments_of(grids, plan.tilt);
  const double spread = spread_of(tilted);
  const Window window = find_window(grids, plan.tilt, tilted, spread);
  plan.steeper = window.steeper;
  plan.low = window.low;
  if (question.epsilon)
    plan.tail = std::max(1e-290, kTailShare * std::exp(std::min(0.0, best.value)) / count);
  // The grid adds up to t (1 + t) spacing^2 / 8 to each step's log E[e^(tL)].
  const double allowed =
      question.epsilon ? kDeltaError : plan.tilt * kEpsilonError * std::max(best.value, 0.05 * spread);
  const double wanted = std::sqrt(8 * allowed / (count * plan.tilt * (1 + plan.tilt)));
  const double width = window.high - window.low;
  const double points =
      std::clamp(width / wanted, static_cast<double>(kFewestPoints) / 2, static_cast<double>(kMostPoints));
  plan.points = std::bit_ceil(static_cast<std::size_t>(points));
  plan.spacing =
      std::max(width / static_cast<double>(plan.points - 1), widest / static_cast<double>(kMostPoints));
  return plan;
}

// The composed loss on the window, untilted when asked.
class ComposedLoss {
 public:
  ComposedLoss(std::span<const RepeatedStep> steps, Direction direction, const Plan& plan)
      : plan_(plan), first_(static_cast<std::int64_t>(std::floor(plan.low / plan.spacing))) {
    for (const RepeatedStep& each : steps) multiply(each, direction);
    finish(total_count(steps));
  }

  double delta(double epsilon) const {
    if (epsilon < loss_at(begin_)) return 1;
    const auto i = static_cast<std::int64_t>(std::floor(epsilon / plan_.spacing)) + 1 - first_;
    return delta_in_cell(static_cast<std::size_t>(std::max(std::int64_t{0}, i)), epsilon);
  }

  // Least epsilon >= 0 on the window that has at most this delta.
  double epsilon(double most) const {
    if (delta_in_cell(plan_.points, 0) > most) return kInfinity;
    std::size_t good = plan_.points;  // delta at the loss of good - 1 is small enough
    std::size_t bad = begin_;
    while (good > bad) {
      const std::size_t middle = (good + bad) / 2;
      (delta_in_cell(middle + 1, loss_at(middle)) <= most ? good : bad) =
          delta_in_cell(middle + 1, loss_at(middle)) <= most ? middle : middle + 1;
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

  void multiply(const RepeatedStep& each, Direction direction) {
    const LossRange range = loss_range(each.step, direction, plan_.tail);
    const LossGrid grid = make_loss_grid(each.step, direction, range, plan_.spacing);
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
      spectrum_[k] += Complex{count * log_size, std::remainder(count * std::arg(factor[k]), 2 * M_PI)};
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

  // Sums from the top of masses, and of masses times e^-loss, untilted and relative to the window's middle.
  void sum_up(const std::vector<double>& masses, double noise) {
    center_ = loss_at(plan_.points / 2);
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

}  // namespace

double pld_delta(std::span<const RepeatedStep> steps, double epsilon, Direction direction) {
  if (steps.empty()) return 0;
  const Plan plan = make_plan(steps, {direction, epsilon, std::nullopt});
  return ComposedLoss(steps, direction, plan).delta(epsilon);
}

double pld_delta(std::span<const RepeatedStep> steps, double epsilon) {
  return std::max(pld_delta(steps, epsilon, Direction::kRemove), pld_delta(steps, epsilon, Direction::kAdd));
}

double pld_epsilon(std::span<const RepeatedStep> steps, double delta) {
  if (steps.empty()) return 0;
  double worse = 0;
  for (const Direction direction : {Direction::kRemove, Direction::kAdd}) {
    const Plan plan = make_plan(steps, {direction, std::nullopt, delta});
    worse = std::max(worse, ComposedLoss(steps, direction, plan).epsilon(delta));
  }
  return worse;
}

}  // namespace fedge::privacy
