// The kinds of Availability, one file each; make_availability() selects one.
#pragma once

#include <memory>

#include "sim/availability/availability.h"

namespace fedge::sim {

std::unique_ptr<Availability> make_gilbert_elliott(const AvailabilitySpec& spec, const Rng& rng);
std::unique_ptr<Availability> make_diurnal(const AvailabilitySpec& spec, const Rng& rng);
Result<std::unique_ptr<Availability>> make_common_shock(const AvailabilitySpec& spec, Population population,
                                                        const Rng& rng);
Result<std::unique_ptr<Availability>> make_trace(const AvailabilitySpec& spec, Population population);

}  // namespace fedge::sim
