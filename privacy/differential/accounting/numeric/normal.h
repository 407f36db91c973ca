// The standard normal distribution at full relative precision, even far out in its tails and on intervals
// much shorter than a standard deviation: a privacy loss is the logarithm of such numbers. Pure functions.
#pragma once

namespace fedge::privacy {

// log Pr[Z <= z]; finite down to z = -1e154.
double log_normal_below(double z);
// Pr[Z > z]; 0 if it is below the least double (z > 38).
double normal_above(double z);
// Pr[from < Z <= to] for from <= to; both may be infinite. Relative error below 1e-13.
double normal_between(double from, double to);

}  // namespace fedge::privacy
