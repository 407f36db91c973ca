// AvailabilitySpec: section [simulation.availability] of a run file: when virtual devices are up.
#pragma once

#include <array>
#include <cstddef>
#include <string>

#include "core/config/reader.h"
#include "core/time.h"

namespace fedge::sim {

enum class AvailabilityKind { kAlways, kGilbertElliott, kDiurnal, kCommonShock, kTrace };

// An interval's length in seconds: log-normal, with this mean and standard deviation of the logarithm,
// truncated at `longest`.
struct IntervalLengths {
  double mu;
  double sigma;
  double longest;
};

struct AvailabilitySpec {
  AvailabilityKind kind = AvailabilityKind::kAlways;
  // gilbert_elliott, common_shock
  Duration slot = seconds(600);
  // gilbert_elliott: probability of a change in a slot
  double p_up_down = 0.2;
  double p_down_up = 0.2;
  // diurnal. Measured on phones over 5 days: a phone is up while it is idle, charging and on Wi-Fi. The
  // longest lengths are fitted (docs/algorithms/availability.md).
  IntervalLengths up = {.mu = 5.06, .sigma = 2.59, .longest = 86'400};
  IntervalLengths down = {.mu = 6.09, .sigma = 3.32, .longest = 14 * 86'400};
  std::array<double, 24> hours = {10.6, 11.7, 12.9, 13.5, 13.7, 13.4, 12.2, 11.1, 10.0, 8.9, 7.8, 6.9,
                                  6.9,  6.5,  6.6,  7.0,  7.6,  8.0,  8.9,  7.7,  6.9,  7.3, 8.7, 9.8};
  double start_hour = 0;  // of the day, at time 0
  // common_shock
  double a = 0.9;
  double z = 0.7;
  std::size_t groups = 1;
  bool tied_to_labels = false;
  // trace
  std::string file;
  Duration period{};  // 0: the trace is not repeated
};

AvailabilitySpec read_availability(config::Reader& section);

}  // namespace fedge::sim
