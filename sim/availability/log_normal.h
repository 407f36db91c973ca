// CutLogNormal: log-normal lengths without those beyond the longest; by inversion of the distribution
// function, so that a length costs one uniform draw whatever the parameters.
#pragma once

#include "sim/availability/spec.h"

namespace fedge::sim {

class CutLogNormal {
 public:
  // The longest must not be below the median e^mu.
  explicit CutLogNormal(const IntervalLengths& lengths);

  // Seconds; `u` is uniform in [0, 1).
  double draw(double u) const;
  // What is left, at a moment that has nothing to do with it, of the interval that the moment falls into:
  // a length that is met in proportion to itself, from a uniform moment in it on.
  double draw_rest(double u, double moment) const;
  double mean() const;  // seconds
  // The chance that a length exceeds so many seconds.
  double beyond(double seconds) const;

 private:
  double length(double mu, double p) const;

  double mu_;
  double sigma_;
  double longest_;
  double cut_;       // normal_cdf at the longest, of lengths
  double rest_cut_;  // and of lengths that are met in proportion to themselves
};

}  // namespace fedge::sim
