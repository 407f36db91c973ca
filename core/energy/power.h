// Power of a processor cluster, and what a device says about the energy of its work. Two laws of dynamic
// power, compared by Jallouli, Boubouh, Basmadjian (arXiv:2605.27601, 2026) and calibrated by one
// measurement: the analytical law of CMOS circuits C V^2 f, and the approximation kappa f^3, which assumes
// that the voltage is proportional to the frequency. Units: hertz, volts, watts, joules, seconds. Pure.
#pragma once

#include <cstddef>
#include <vector>

#include "core/result.h"

namespace fedge {

inline constexpr std::size_t kMaxFrequencies = 64;

// A device as it describes itself to a coordinator. Valid if check_power() accepts it.
struct DevicePower {
  std::vector<double> hertz;   // frequencies of the cluster that trains, ascending
  std::vector<double> volts;   // at each of them, not falling
  double watts_lowest = 0;     // measured dynamic power under full load, at the lowest frequency
  double watts_highest = 0;    // and at the highest one
  double cycles_per_flop = 0;  // of training on all cores of the cluster
  double awake_watts = 0;      // everything else that is on while the device works for a run
  double send_watts = 0;       // of the radio while it sends, besides the former
  double receive_watts = 0;    // while it receives
  double send_bytes_per_second = 0;
  double receive_bytes_per_second = 0;
  bool operator==(const DevicePower&) const = default;
};

// kInvalid, naming the value: a list is empty, too long, or of another length; a number is not finite, not
// positive, or beyond what any device has; frequencies or voltages are not in order.
Result<void> check_power(const DevicePower& power);

enum class PowerLaw {
  kAnalytical,   // C V^2 f
  kApproximate,  // kappa f^3
};
// The measurement that gives C or kappa.
enum class PowerAnchor { kLowest, kHighest, kMean };  // kMean: the mean of both results

// A law calibrated for one cluster.
class PowerModel {
 public:
  // `power` must be valid.
  PowerModel(const DevicePower& power, PowerLaw law, PowerAnchor anchor);

  // Number of frequencies.
  std::size_t steps() const { return watts_.size(); }
  // Dynamic power under full load at frequency number `step`.
  double watts(std::size_t step) const { return watts_[step]; }
  // Dynamic energy of this many cycles. Proportional to `cycles`: dividing work into pieces changes nothing.
  double joules(double cycles, std::size_t step) const { return cycles * per_cycle_[step]; }

 private:
  std::vector<double> watts_;
  std::vector<double> per_cycle_;
};

// Ratio of the approximate to the analytical power at frequency f_b, if both are calibrated at f_a:
// (f_b / f_a)^2 (V_a / V_b)^2.
double approximation_ratio(double hertz_a, double volts_a, double hertz_b, double volts_b);

// Effort: a task's demands on a device besides its part of the model.
struct Effort {
  double hertz = 0;  // frequency of the processor; 0: the device's own choice
  double kept = 0;   // fraction of the update's values that is sent, at most 1; 0: as the run file says
  bool operator==(const Effort&) const = default;
};

}  // namespace fedge
