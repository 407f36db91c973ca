#include "privacy/differential/accounting/loss/loss_distribution.h"

#include <algorithm>
#include <cmath>

#include "privacy/differential/accounting/loss/sampled_loss.h"
#include "privacy/differential/accounting/numeric/infinity.h"
#include "privacy/differential/accounting/numeric/normal.h"

namespace fedge::privacy {
namespace {

// Mass of Laplace noise of scale 1 between two points.
double laplace_between(double from, double to) {
  if (from == to) return 0;  // also if both are infinite
  if (to <= 0) return laplace_between(-to, -from);
  if (from < 0) return -0.5 * (std::expm1(from) + std::expm1(-to));
  return -0.5 * std::exp(-from) * std::expm1(from - to);
}

// plain_loss(): the loss at x without sampling, which rises with x. place_of(): the largest x at which it is
// at most `loss`.
double plain_loss(const NoisyStep& step, double x) {
  if (step.noise == Noise::kGaussian) return (2 * x - 1) / (2 * step.scale * step.scale);
  return (std::abs(x) - std::abs(x - 1)) / step.scale;
}

double place_of(const NoisyStep& step, double loss) {
  const double plain = unsampled_loss(step.sampling_rate, loss);
  if (step.noise == Noise::kGaussian) return step.scale * step.scale * plain + 0.5;
  const double turned = step.scale * plain;
  if (turned >= 1) return kInfinity;
  return turned < -1 ? -kInfinity : 0.5 * (turned + 1);
}

struct Masses {
  double p = 0;
  double q = 0;
};

Masses masses_between(const NoisyStep& step, Direction direction, double from, double to) {
  const auto around = [&](double center) {
    const double a = (from - center) / step.scale;
    const double b = (to - center) / step.scale;
    return step.noise == Noise::kGaussian ? normal_between(a, b) : laplace_between(a, b);
  };
  const double without = around(0);
  const double with = (1 - step.sampling_rate) * without + step.sampling_rate * around(1);
  return direction == Direction::kRemove ? Masses{with, without} : Masses{without, with};
}

// The part of P's mass between the losses `lower` and lower + spacing that moves to the upper one. The split
// keeps Q's mass as well, to which P's mass m at loss l contributes m e^-l.
double to_upper(const Masses& masses, double lower, double spacing) {
  if (masses.q == 0 || spacing <= 0) return masses.p;
  const double share = std::expm1(lower + std::log(masses.q / masses.p)) / std::expm1(-spacing);
  return masses.p * std::clamp(share, 0.0, 1.0);
}

// The range of the noise outside which each side has at most `tail` of the mass. Laplace's loss is constant
// outside.
struct NoiseRange {
  double from = 0;
  double to = 1;
};

NoiseRange noise_range(const NoisyStep& step, double tail) {
  if (step.noise == Noise::kLaplace) return {};
  // Pr[Z > z] <= e^(-z^2/2) / 2.
  const double reach = step.scale * std::sqrt(-2 * std::log(tail));
  return {-reach, 1 + reach};
}

}  // namespace

LossRange loss_range(const NoisyStep& step, Direction direction, double tail) {
  const NoiseRange noise = noise_range(step, tail);
  const double least = sampled_loss(step.sampling_rate, plain_loss(step, noise.from));
  const double most = sampled_loss(step.sampling_rate, plain_loss(step, noise.to));
  return direction == Direction::kRemove ? LossRange{least, most} : LossRange{-most, -least};
}

LossGrid make_loss_grid(const NoisyStep& step, Direction direction, const LossRange& range, double spacing) {
  LossGrid grid{spacing, static_cast<std::int64_t>(std::floor(range.low / spacing)), {}, 0};
  const auto last = static_cast<std::int64_t>(std::ceil(range.high / spacing));
  const bool remove = direction == Direction::kRemove;
  // The loss rises with x if a client is removed, and falls with x if one is added.
  const auto boundary = [&](std::int64_t index) {
    const double loss = static_cast<double>(index) * spacing;
    return place_of(step, remove ? loss : -loss);
  };
  const auto between = [&](double before, double after) {
    return remove ? masses_between(step, direction, before, after)
                  : masses_between(step, direction, after, before);
  };
  double before = boundary(grid.first);
  double at_lower = between(remove ? -kInfinity : kInfinity, before).p;
  for (std::int64_t i = grid.first; i < last; ++i) {
    const double after = boundary(i + 1);
    const Masses masses = between(before, after);
    const double upper = masses.p > 0 ? to_upper(masses, static_cast<double>(i) * spacing, spacing) : 0;
    grid.log_masses.push_back(std::log(at_lower + (masses.p - upper)));
    at_lower = upper;
    before = after;
  }
  grid.log_masses.push_back(std::log(at_lower));
  grid.infinite = between(before, remove ? kInfinity : -kInfinity).p;
  return grid;
}

LossPoints make_loss_points(const NoisyStep& step, Direction direction, double tail, std::size_t cells) {
  const bool remove = direction == Direction::kRemove;
  const NoiseRange noise = noise_range(step, tail);
  const double width = (noise.to - noise.from) / static_cast<double>(cells);
  const auto place = [&](std::size_t i) {
    return remove ? noise.from + static_cast<double>(i) * width : noise.to - static_cast<double>(i) * width;
  };
  const auto loss_at = [&](double x) {
    const double loss = sampled_loss(step.sampling_rate, plain_loss(step, x));
    return remove ? loss : -loss;
  };
  LossPoints points;
  points.losses.push_back(loss_at(place(0)));
  double at_lower =
      masses_between(step, direction, remove ? -kInfinity : place(0), remove ? place(0) : kInfinity).p;
  for (std::size_t i = 0; i < cells; ++i) {
    const double next = place(i + 1);
    const double lower = points.losses.back();
    points.losses.push_back(loss_at(next));
    const Masses masses = masses_between(step, direction, std::min(place(i), next), std::max(place(i), next));
    const double upper = masses.p > 0 ? to_upper(masses, lower, points.losses.back() - lower) : 0;
    points.log_masses.push_back(std::log(at_lower + (masses.p - upper)));
    at_lower = upper;
  }
  const double end = place(cells);
  if (step.noise == Noise::kLaplace)
    at_lower += masses_between(step, direction, remove ? end : -kInfinity, remove ? kInfinity : end).p;
  points.log_masses.push_back(std::log(at_lower));
  return points;
}

}  // namespace fedge::privacy
