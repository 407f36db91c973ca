// One step's privacy loss L = log(P / Q) as a distribution on a grid, pessimistic: its hockey-stick curve
// delta(epsilon) is nowhere below the step's own. "Connecting the dots" (Doroshenko, Ghazi, Kamath, Kumar,
// Manurangsi, "Connect the Dots: Tighter Discrete Approximations of Privacy Loss Distributions", PETS 2022):
// what P and Q have between two grid points is moved to these two such that both keep their mass. The curve
// is then exact at grid points and linear in e^epsilon between them, where the true one, being convex, is
// below.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace fedge::privacy {

enum class Noise { kGaussian, kLaplace };

// P and Q are mixtures of noise around 0 and around 1 (the sensitivity): (1-q) N(0) + q N(1), and N(0).
struct NoisyStep {
  Noise noise = Noise::kGaussian;
  double sampling_rate = 1;  // q, in (0, 1]
  double scale = 1;          // standard deviation, or Laplace's b, over the sensitivity; > 0

  bool operator==(const NoisyStep&) const = default;
};

// Which of the two is P: the data with the client (it is removed), or those without (it is added).
enum class Direction { kRemove, kAdd };

struct LossRange {
  double low = 0;
  double high = 0;
};
// From which loss to which one it makes sense to have a grid: outside is, on each side, at most `tail` of P.
LossRange loss_range(const NoisyStep& step, Direction direction, double tail);

struct LossGrid {
  double spacing = 1;
  std::int64_t first = 0;  // the loss of the first entry is first * spacing
  // Logarithm of P's mass at each grid point. What is below the grid is in its first entry.
  std::vector<double> log_masses;
  double infinite = 0;  // P's mass above the grid: taken to be lost altogether
};
LossGrid make_loss_grid(const NoisyStep& step, Direction direction, const LossRange& range, double spacing);

// The same at points that are evenly spaced in the noise instead of in the loss, rising: few of them are
// enough for moments, however small the sampling rate is. Pessimistic but for what is in the tail.
struct LossPoints {
  std::vector<double> losses;
  std::vector<double> log_masses;
};
LossPoints make_loss_points(const NoisyStep& step, Direction direction, double tail, std::size_t cells);

}  // namespace fedge::privacy
