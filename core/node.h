// The node contract: a role (such as coordinator, client or peer) is a pure state machine.
//
//   step(input, {now, rng}, effects)   handles one input and appends effects
//   next_deadline()                    when to call step(Expired) if no other input arrives
//
// A role never blocks, sleeps, locks, reads a clock, draws hidden randomness, logs or calls out. Sending,
// training and disk writes are effects; their outcome returns as an input. Expired is a hint: a role compares
// `now` with its own deadline, so a late or extra Expired is harmless. Drivers: server/ and client/ on Asio,
// sim/ on an event heap. They drive the same objects.
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

// The input that announces a possibly expired deadline.
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
