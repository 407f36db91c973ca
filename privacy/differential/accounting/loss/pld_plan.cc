#include "privacy/differential/accounting/loss/pld_plan.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "privacy/differential/accounting/loss/fft.h"
#include "privacy/differential/accounting/numeric/infinity.h"
#include "privacy/differential/accounting/numeric/log_sum.h"
#include "privacy/differential/accounting/numeric/search.h"

namespace fedge::privacy {
namespace {

constexpr std::size_t kCoarseCells = 2048;  // per step
constexpr std::size_t kFewestPoints = std::size_t{1} << 10;
constexpr double kNegligible = 1e-10;  // fraction of delta

struct Moments {
  double log_sum = 0;  // log of the sum of masses times e^(t loss)
  double mean = 0;     // of the loss under these weights, normalised
  double variance = 0;
};

Moments moments_of(const LossPoints& points, double t) {
  LogSum sum;
  for (std::size_t j = 0; j < points.losses.size(); ++j) sum.add(points.log_masses[j] + t * points.losses[j]);
  Moments moments{sum.log(), 0, 0};
  double square = 0;
  const double origin = points.losses.front();
  for (std::size_t j = 0; j < points.losses.size(); ++j) {
    const double above = points.losses[j] - origin;
    const double weight = std::exp(points.log_masses[j] + t * points.losses[j] - moments.log_sum);
    moments.mean += weight * above;
    square += weight * above * above;
  }
  moments.variance = std::max(0.0, square - moments.mean * moments.mean);
  moments.mean += origin;
  return moments;
}

// Moments of the sum of all losses: logarithms, means and variances add up.
Moments moments_of(std::span<const RepeatedPoints> all_points, double t) {
  Moments all;
  for (const RepeatedPoints& each : all_points) {
    const Moments one = moments_of(each.points, t);
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

double spread_of(const Composition& composition, const Moments& moments) {
  return std::max(std::sqrt(moments.variance), 1e-9 * composition.widest);
}

struct Tilts {
  double least;
  double most;
};
Tilts tilts_of(const Composition& composition) {
  return {std::min(0.1 / composition.spread, 0.01), std::max(1e3 / composition.spread, 1.0)};
}

// The tilt for which the tilted loss has its mean at epsilon: the saddle point of delta(epsilon).
double tilt_for_epsilon(const Composition& composition, double epsilon) {
  auto [low, high] = tilts_of(composition);
  for (int i = 0; i < 40; ++i) {
    const double middle = std::sqrt(low * high);
    (moments_of(composition.coarse, middle).mean < epsilon ? low : high) = middle;
  }
  return low;
}

// The ends of the window for a tilt. The mass above it is a negligible fraction of delta. Mass outside either
// end that wraps into the window, because the transform is periodic, also adds a negligible fraction.
struct Window {
  double low = -kInfinity;
  double high = kInfinity;
  double steeper = 1;
};

// Finds the window of the composition with this fraction of its counts.
Window find_window(const Composition& composition, double share, const Goal& goal, double tilt) {
  const double log_negligible = goal.log_delta + std::log(kNegligible);
  const auto scaled = [&](double t) {
    const Moments all = moments_of(composition.coarse, t);
    return Moments{share * all.log_sum, share * all.mean, share * all.variance};
  };
  const Moments tilted = scaled(tilt);
  const double spread = spread_of(composition, tilted);
  const double wrapped = std::min(log_negligible + tilt * goal.epsilon - tilted.log_sum, -10.0);
  Window window;
  double wrapping = kInfinity;
  for (double k = 0.25; k <= 64; k *= 2) {
    const double u = k / spread;
    const double above = scaled(tilt + u).log_sum;
    const double below = scaled(tilt - u).log_sum;
    const double high = (above - log_negligible) / (tilt + u);
    if (high < window.high) window = {window.low, high, tilt + u};
    wrapping = std::min(wrapping, (above - tilted.log_sum - wrapped) / u);
    window.low = std::max(window.low, -(below - tilted.log_sum - wrapped) / u);
  }
  window.low = std::min(window.low, goal.epsilon - 0.1 * spread);
  window.high = std::max({window.high, wrapping - (goal.epsilon - window.low), goal.epsilon + 0.1 * spread});
  return window;
}

// Chernoff's bound of log delta at epsilon for the tilt t.
double log_bound(const Composition& composition, double epsilon, double t) {
  return moments_of(composition.coarse, t).log_sum - t * (epsilon + std::log1p(1 / t)) - std::log1p(t);
}

}  // namespace

Composition make_composition(std::span<const RepeatedStep> steps, Direction direction, double tail) {
  const double count = total_count(steps);
  Composition all{steps, direction, std::max(1e-290, tail / count), count, {}};
  for (const RepeatedStep& each : steps) {
    const LossRange range = loss_range(each.step, direction, all.tail);
    const double width = range.high - range.low;
    all.coarse.push_back({make_loss_points(each.step, direction, all.tail, kCoarseCells), each.count});
    all.widest = std::max(all.widest, width);
    all.most += each.count * range.high;
  }
  all.spread = spread_of(all, moments_of(all.coarse, 0));
  return all;
}

double chernoff_epsilon(const Composition& composition, double delta) {
  const auto bound = [&](double log_t) {
    const double t = std::exp(log_t);
    return moments_of(composition.coarse, t).log_sum / t - std::log1p(1 / t) -
           (std::log(delta) + std::log1p(t)) / t;
  };
  const Tilts tilts = tilts_of(composition);
  return std::max(0.0, golden_section(bound, std::log(tilts.least), std::log(tilts.most), 40).value);
}

double chernoff_log_delta(const Composition& composition, double epsilon) {
  return std::min(0.0, log_bound(composition, epsilon, tilt_for_epsilon(composition, epsilon)));
}

Plan make_plan(const Composition& composition, const Goal& goal, const Precision& precision) {
  const double saddle = tilt_for_epsilon(composition, goal.epsilon);
  const double most = static_cast<double>(precision.most_points);
  // Rounding the losses L to a grid adds at most t (1 + t) spacing^2 / 8 per step to log E[e^(tL)] at the
  // tilt t, and so to log delta. Left of the mean, t is 0, but delta still changes by a factor of about e
  // over one standard deviation; hence the lower bound 1 / spread.
  const double slope = std::max(saddle, 1 / composition.spread);
  const double harm = composition.count * slope * (1 + slope) / 8;
  Plan best;
  double least_error = kInfinity;
  // Tries smaller tilts too. At the saddle point, rounding is least relative to delta, but a tilt makes rare
  // large losses frequent, so that the window may be wider.
  for (const double share : {1.0, 0.75, 0.55, 0.4, 0.3, 0.2}) {
    const double tilt = share * saddle;
    Window window = find_window(composition, 1, goal, tilt);
    for (double less = 0.5; less >= precision.least_share; less /= 2) {
      const Window other = find_window(composition, less, {less * goal.epsilon, goal.log_delta}, tilt);
      window.low = std::min(window.low, other.low);
      window.high = std::max(window.high, other.high);
    }
    const double width = window.high - window.low;
    const double wanted = std::sqrt(precision.log_delta / harm);
    const double points = std::clamp(width / wanted, static_cast<double>(kFewestPoints), most);
    const std::size_t size = std::bit_ceil(static_cast<std::size_t>(points));
    const double spacing = std::max(width / static_cast<double>(size - 1), composition.widest / most);
    const double log_size = moments_of(composition.coarse, tilt).log_sum - tilt * goal.epsilon;
    const double rounding = composition.count * fourier_error(size) * std::exp(log_size - goal.log_delta);
    const double error = harm * spacing * spacing + rounding;
    if (best.points != 0 && !(error < least_error)) continue;
    least_error = error;
    best = {tilt, window.steeper, spacing, window.low, goal.epsilon, size};
  }
  return best;
}

}  // namespace fedge::privacy
