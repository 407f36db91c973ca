// The privacy loss distribution (PLD) accountant, the tight one. Losses of consecutive steps add up, so the
// composed loss is the convolution of theirs (Meiser and Mohammadi 2018; Koskela, Jalko, Honkela 2020), and
//   delta(epsilon) = E[(1 - e^(epsilon - L))+].
// Every approximation is pessimistic, so that no result is below the true value:
//   - each step is put onto a grid pessimistically (loss_distribution.h); its upper tail counts as
//     infinite loss;
//   - distributions are tilted by e^(theta L) before they are transformed (exponential change of measure),
//     with theta near the value of the tightest Chernoff bound. Rounding is then relative to delta instead
//     of absolute, and a delta of 1e-30 is as precise as one of 0.1;
//   - a bound on the transforms' rounding is added to every mass. The mass above the window of the transform
//     is bounded by Chernoff and counts as infinite loss.
// The grid keeps the discretisation error below 2e-7 of epsilon (1e-6 of delta), but has at most 2^20 points
// over the window or over one step's losses. If that is too few, the result is larger than needed, never
// smaller. Cost: 0.1 to 0.5 s, whatever the number of steps; proportional to the number of different
// mechanisms.
#pragma once

#include <memory>
#include <optional>
#include <span>

#include "privacy/differential/accounting/loss/loss_distribution.h"

namespace fedge::privacy {

struct RepeatedStep {
  NoisyStep step;
  double count = 1;  // integer, >= 1

  bool operator==(const RepeatedStep&) const = default;
};

// Upper bound of delta at this epsilon (>= 0) in one direction.
double pld_delta(std::span<const RepeatedStep> steps, double epsilon, Direction direction);
// The same for the worse direction.
double pld_delta(std::span<const RepeatedStep> steps, double epsilon);
// Upper bound of epsilon at this delta, in (0, 1), for both directions. Infinity if the window does not
// contain it.
double pld_epsilon(std::span<const RepeatedStep> steps, double delta);

// pld_epsilon() for one step whose count grows from call to call. It computes once, for up to 8, 64, 512 ...
// steps, what does not depend on the count. The error is within the discretisation error stated above. The
// result depends only on the arguments, not on earlier calls. Externally synchronised. Cost: one
// pld_epsilon() for each power of 8, otherwise some 10 ms per call. Memory: at most 16 MiB.
class GrowingLoss {
 public:
  GrowingLoss();
  ~GrowingLoss();
  GrowingLoss(GrowingLoss&&) noexcept;
  GrowingLoss& operator=(GrowingLoss&&) noexcept;

  double epsilon(const RepeatedStep& step, double delta);

 private:
  struct Planned;
  // Nothing if the plan is not precise enough.
  std::optional<double> epsilon_in_direction(const RepeatedStep& step, Direction direction, double floor);

  std::unique_ptr<Planned> planned_;
};

}  // namespace fedge::privacy
