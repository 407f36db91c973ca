// The privacy loss L = log(P / Q) of one step as a pessimistic distribution on a grid: its hockey-stick curve
// delta(epsilon) is nowhere below the step's own. Method: "connecting the dots" (Doroshenko, Ghazi, Kamath,
// Kumar, Manurangsi, "Connect the Dots: Tighter Discrete Approximations of Privacy Loss Distributions", PETS
// 2022). The mass between two grid points is moved to them such that both P and Q keep their mass. The curve
// is then exact at grid points and linear in e^epsilon between them, where the convex true curve lies below.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace fedge::privacy {

enum class Noise { kGaussian, kLaplace };

// A step with P = (1-q) N(0) + q N(1) and Q = N(0), where N(c) is noise around c and 1 is the sensitivity.
struct NoisyStep {
  Noise noise = Noise::kGaussian;
  double sampling_rate = 1;  // q, in (0, 1]
  double scale = 1;          // standard deviation, or Laplace's b, over the sensitivity; > 0

  bool operator==(const NoisyStep&) const = default;
};

// Whether P is the data with the client (it is removed) or without the client (it is added).
enum class Direction { kRemove, kAdd };

struct LossRange {
  double low = 0;
  double high = 0;
};
// The range of losses that a grid should span: each side outside it has at most `tail` of P.
LossRange loss_range(const NoisyStep& step, Direction direction, double tail);

struct LossGrid {
  double spacing = 1;
  std::int64_t first = 0;  // the loss of the first entry is first * spacing
  // Logarithm of P's mass at each grid point. The first entry includes the mass below the grid.
  std::vector<double> log_masses;
  double infinite = 0;  // P's mass above the grid: its loss counts as infinite
};
LossGrid make_loss_grid(const NoisyStep& step, Direction direction, const LossRange& range, double spacing);

// The same distribution at ascending points that are evenly spaced in the noise instead of in the loss: few
// of them are enough for moments, however small the sampling rate is. Pessimistic except for the tail.
struct LossPoints {
  std::vector<double> losses;
  std::vector<double> log_masses;
};
LossPoints make_loss_points(const NoisyStep& step, Direction direction, double tail, std::size_t cells);

}  // namespace fedge::privacy
