// Availability: when each virtual device is up (ready to take part) or down. A pure function of
// specification, seed and client: earlier calls do not matter. A device's whole state is its current phase,
// so a million devices need only a million phases (a trace also keeps its intervals). Immutable; any thread.
// first() and next() are O(1), for common_shock O(slots until the change), at most kLookAhead slots.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "core/ids.h"
#include "core/result.h"
#include "core/rng.h"
#include "core/time.h"
#include "learn/task.h"
#include "sim/availability/spec.h"

namespace fedge::sim {

// A period in which a device is up, or down.
struct Phase {
  bool up = true;
  std::optional<Time> until;  // exclusive end; nothing: never ends
  std::uint64_t index = 0;    // position in the device's draws or intervals
};
// 32 MB for a million devices.
static_assert(sizeof(Phase) == 32);

// Later changes are ignored, because a Time could not hold them.
constexpr Time kLastChange = Time(seconds(4e9));
// Slots that common_shock searches for a change. A phase may therefore be followed by one of the same kind.
constexpr std::uint64_t kLookAhead = 4096;

class Availability {
 public:
  virtual ~Availability() = default;
  // The device's phase at time 0.
  virtual Phase first(ClientId client) const = 0;
  // The phase after `phase`, which must be this client's and have an end.
  virtual Phase next(ClientId client, const Phase& phase) const = 0;
  // Devices of one site fail together and have about the same latency; most have a site of their own.
  virtual std::uint32_t site(ClientId client) const { return client.value(); }
};

// The clients of a simulation.
struct Population {
  std::size_t clients = 0;
  const learn::Task* task = nullptr;  // source of labels, required for tied_to_labels
};

// Makes the configured kind; `rng` is the run's root stream. Fails if a trace cannot be read (line and field
// are named), or if there are more groups than clients. Keeps no reference to its arguments.
Result<std::unique_ptr<Availability>> make_availability(const AvailabilitySpec& spec, Population population,
                                                        const Rng& rng);

}  // namespace fedge::sim
