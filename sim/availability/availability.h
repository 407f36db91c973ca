// Availability: when each virtual device is up, that is ready to take part, and when it is down. A pure
// function of specification, seed and client: it does not matter who asked before, or what. A device's
// whole state is the phase it is in, so that a million of them need a million phases and nothing else
// (a trace keeps its intervals). Immutable; for any thread. first() and next() are O(1), for
// common_shock O(slots until the change), at most kLookAhead of them.
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

// A stretch of time over which a device is up, or down.
struct Phase {
  bool up = true;
  std::optional<Time> until;  // its end, which does not belong to it; nothing: never
  std::uint64_t index = 0;    // where the device's draws or intervals have got to
};
// A million devices: 32 MB.
static_assert(sizeof(Phase) == 32);

// Later changes are left out: more would not fit into a Time.
constexpr Time kLastChange = Time(seconds(4e9));
// Slots that common_shock looks ahead for a change. A phase may so be followed by one like it.
constexpr std::uint64_t kLookAhead = 4096;

class Availability {
 public:
  virtual ~Availability() = default;
  // The phase that the device is in at time 0.
  virtual Phase first(ClientId client) const = 0;
  // What follows `phase`, one of this client's that has an end.
  virtual Phase next(ClientId client, const Phase& phase) const = 0;
  // Devices of one site fail together and are about equally far away; most are a site of their own.
  virtual std::uint32_t site(ClientId client) const { return client.value(); }
};

// Who there is.
struct Population {
  std::size_t clients = 0;
  const learn::Task* task = nullptr;  // for labels: needed only with tied_to_labels
};

// `rng` is the run's root stream. Fails if a trace cannot be read (line and field are named), or if there
// are more groups than clients. Keeps nothing of what it is lent.
Result<std::unique_ptr<Availability>> make_availability(const AvailabilitySpec& spec, Population population,
                                                        const Rng& rng);

}  // namespace fedge::sim
