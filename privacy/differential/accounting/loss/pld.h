// The privacy loss distribution (PLD) accountant: the tight one. Steps that run one after another add their
// losses, so the composed loss is the convolution of theirs (Meiser and Mohammadi 2018; Koskela, Jalko,
// Honkela 2020), and
//   delta(epsilon) = E[(1 - e^(epsilon - L))+].
// Every approximation errs on the safe side, so that what comes out is never below the true value:
//   - each step is put onto a grid pessimistically (loss_distribution.h); its upper tail counts as infinite
//   loss;
//   - distributions are tilted by e^(theta L) before they are transformed (exponential change of measure),
//   with
//     theta where Chernoff's bound is tightest, so that rounding is relative to delta instead of absolute,
//     and a delta of 1e-30 is as precise as one of 0.1;
//   - a bound on the transforms' rounding is added to every mass, and what lies beyond the window of the
//   transform
//     is bounded by Chernoff and counts as infinite loss.
// The grid is as fine as keeps the discretisation below 2e-7 of epsilon (1e-6 of delta), but no finer than
// 2^20 points over the window or over one step's losses: then it is coarser and the answer larger, never
// smaller. Cost: some 0.1 to 0.5 s whatever the number of steps; a hundred different mechanisms cost a
// hundred times that.
#pragma once

#include <memory>
#include <optional>
#include <span>

#include "privacy/differential/accounting/loss/loss_distribution.h"

namespace fedge::privacy {

struct RepeatedStep {
  NoisyStep step;
  double count = 1;  // whole, >= 1

  bool operator==(const RepeatedStep&) const = default;
};

// Upper bound of delta at this epsilon (>= 0), in one direction.
double pld_delta(std::span<const RepeatedStep> steps, double epsilon, Direction direction);
// The same for the worse of the two directions.
double pld_delta(std::span<const RepeatedStep> steps, double epsilon);
// Upper bound of epsilon at this delta, in (0, 1), both directions. Infinity if the grid cannot tell.
double pld_epsilon(std::span<const RepeatedStep> steps, double delta);

// The same for a step whose count grows, asked again and again: what does not depend on the count is computed
// once, for up to 8, 64, 512 ... steps. As precise as pld_epsilon(), within the discretisation that is stated
// above. A function of its arguments alone, whatever was asked before. Externally synchronised. Cost: as
// pld_epsilon() once for each power of 8, then some hundredth of a second. Memory: 16 MiB at most.
class GrowingLoss {
 public:
  GrowingLoss();
  ~GrowingLoss();
  GrowingLoss(GrowingLoss&&) noexcept;
  GrowingLoss& operator=(GrowingLoss&&) noexcept;

  double epsilon(const RepeatedStep& step, double delta);

 private:
  struct Planned;
  // Nothing if the plan does not tell it precisely.
  std::optional<double> epsilon_in_direction(const RepeatedStep& step, Direction direction, double floor);

  std::unique_ptr<Planned> planned_;
};

}  // namespace fedge::privacy
