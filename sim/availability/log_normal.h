// CutLogNormal: log-normal lengths truncated at the longest, by inversion of the distribution function: a
// length costs one uniform draw for any parameters.
#pragma once

#include "sim/availability/spec.h"

namespace fedge::sim {

class CutLogNormal {
 public:
  // The longest must be at least the median e^mu.
  explicit CutLogNormal(const IntervalLengths& lengths);

  // Draws a length in seconds; `u` is uniform in [0, 1).
  double draw(double u) const;
  // Draws the remaining length at a random moment: the interval is selected in proportion to its length, and
  // `moment` is uniform within it.
  double draw_rest(double u, double moment) const;
  double mean() const;  // seconds
  // The probability that a length exceeds this many seconds.
  double beyond(double seconds) const;

 private:
  double length(double mu, double p) const;

  double mu_;
  double sigma_;
  double longest_;
  double cut_;       // normal_cdf at the longest length
  double rest_cut_;  // the same for length-weighted intervals
};

}  // namespace fedge::sim
