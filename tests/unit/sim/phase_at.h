// Finds the phase that a device is in at a time.
#pragma once

#include "sim/availability/availability.h"

namespace fedge::test {

// Walks through all phases from the start; `time` >= 0.
inline sim::Phase phase_at(const sim::Availability& availability, ClientId client, Time time) {
  sim::Phase phase = availability.first(client);
  while (phase.until && *phase.until <= time) phase = availability.next(client, phase);
  return phase;
}

}  // namespace fedge::test
