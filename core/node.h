// The node contract: a role (coordinator, client, later tracker and peer) is a pure state machine.
//
//   step(input, {now, rng}, effects)   takes one input, appends what is to be done
//   next_deadline()                    when to call step(Expired) if nothing else happens
//
// A role never blocks, sleeps, locks, reads a clock, draws hidden randomness, logs or calls out.
// Sending, training and disk writes are effects; their outcome comes back as an input. Expired is a
// hint: a role compares `now` with its own deadline, so that a stale timer is harmless.
// Drivers: server/ and client/ on Asio, sim/ on an event heap. They drive the same objects.
#pragma once

#include <concepts>
#include <optional>
#include <vector>

#include "core/rng.h"
#include "core/time.h"

namespace fedge {

struct StepContext {
  Time now;
  const Rng& rng;  // the run's root stream: fork it by purpose, round and client
};

// The input that says a deadline may have passed.
struct Expired {};

template <class Role>
concept Node = requires(Role role, const Role& view, const typename Role::Input& input,
                        const StepContext& context, std::vector<typename Role::Effect>& effects) {
  { role.step(input, context, effects) } -> std::same_as<void>;
  { view.next_deadline() } -> std::same_as<std::optional<Time>>;
};

// Helper for std::visit over inputs and effects.
template <class... Handlers>
struct Overloaded : Handlers... {
  using Handlers::operator()...;
};
template <class... Handlers>
Overloaded(Handlers...) -> Overloaded<Handlers...>;

}  // namespace fedge
