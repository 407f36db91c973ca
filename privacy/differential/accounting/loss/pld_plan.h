// Planning for pld.cc: a coarse view of a composition of privacy losses, and the tilt, window and grid for
// composing it. A bad plan can make the accountant's result larger than needed, but never too small.
#pragma once

#include <span>
#include <vector>

#include "privacy/differential/accounting/loss/pld.h"

namespace fedge::privacy {

struct RepeatedPoints {
  LossPoints points;
  double count = 1;
};

// The steps in one direction, with a coarse view of their losses.
struct Composition {
  std::span<const RepeatedStep> steps;
  Direction direction = Direction::kRemove;
  double tail = 0;   // mass of each step whose loss may count as infinite
  double count = 0;  // total number of steps
  std::vector<RepeatedPoints> coarse;
  double widest = 0;  // largest range of one step's losses
  double spread = 0;  // standard deviation of the composed loss
  double most = 0;    // maximum of the composed loss, tails excluded
};
// `tail`: for all steps together.
Composition make_composition(std::span<const RepeatedStep> steps, Direction direction, double tail);

// Chernoff's bounds: Renyi differential privacy of order 1 + t for the best t (see rdp.h).
double chernoff_epsilon(const Composition& composition, double delta);
double chernoff_log_delta(const Composition& composition, double epsilon);

// The point of the curve that a plan is made for: one coordinate is given, the other is an estimate.
struct Goal {
  double epsilon = 0;
  double log_delta = 0;
};
struct Precision {
  double log_delta = 1e-8;  // largest effect of the grid's spacing on log delta
  std::size_t most_points = 0;
  // The window must also fit the same steps with lower counts, down to this fraction of them, a power of 2.
  double least_share = 1;
};
struct Plan {
  double tilt = 1;
  double steeper = 1;  // tilt that gives the best bound of the mass above the window
  double spacing = 1;
  double low = 0;     // lower end of the window
  double center = 0;  // expected position of the answer
  std::size_t points = 0;
};
Plan make_plan(const Composition& composition, const Goal& goal, const Precision& precision);

}  // namespace fedge::privacy
