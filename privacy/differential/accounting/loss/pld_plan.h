// What a composition of privacy losses looks like from afar, and how to carry it out exactly: which tilt,
// window and grid. Nothing decided here can make the accountant's result too small, only larger than need be.
// Used by pld.cc.
#pragma once

#include <span>
#include <vector>

#include "privacy/differential/accounting/loss/pld.h"

namespace fedge::privacy {

struct RepeatedPoints {
  LossPoints points;
  double count = 1;
};

// The steps in one direction, and a coarse view of them.
struct Composition {
  std::span<const RepeatedStep> steps;
  Direction direction = Direction::kRemove;
  double tail = 0;   // of each step, beyond which its losses count as infinite
  double count = 0;  // of all steps
  std::vector<RepeatedPoints> coarse;
  double widest = 0;  // range of one step's losses
  double spread = 0;  // standard deviation of the composed loss
  double most = 0;    // loss that all together have at most, but for the tails
};
// `tail`: of all steps together.
Composition make_composition(std::span<const RepeatedStep> steps, Direction direction, double tail);

// Chernoff's bounds: what is Renyi differential privacy of order 1 + t for the best t (see rdp.h).
double chernoff_epsilon(const Composition& composition, double delta);
double chernoff_log_delta(const Composition& composition, double epsilon);

// Both what is known and an estimate of what is wanted: the plan is made for that point of the curve.
struct Goal {
  double epsilon = 0;
  double log_delta = 0;
};
struct Precision {
  double log_delta = 1e-8;  // what the grid's spacing may add to it
  std::size_t most_points = 0;
  // The window is also for the same steps taken less often: down to this share of their counts, a power of 2.
  double least_share = 1;
};
struct Plan {
  double tilt = 1;
  double steeper = 1;  // the tilt that bounds the mass beyond the window best
  double spacing = 1;
  double low = 0;     // the window's lower end
  double center = 0;  // where the answer is expected
  std::size_t points = 0;
};
Plan make_plan(const Composition& composition, const Goal& goal, const Precision& precision);

}  // namespace fedge::privacy
