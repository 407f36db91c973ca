// Private to Peer: the context of a step, and shared constants.
#pragma once

#include <vector>

#include "protocol/limits.h"
#include "swarm/peer/peer.h"

namespace fedge::swarm {

inline constexpr Duration kTick = seconds(1);
// Minimum number of pending requests to a neighbour, used until it has sent more.
inline constexpr std::size_t kFewestAsked = 2;
// Maximum number of chunks that a seeder offers to a neighbour at a time.
inline constexpr std::size_t kOffers = 4;
// Maximum number of bytes handed to a link and not yet written, unless it is a single chunk.
inline constexpr std::size_t kMaxUnsent = 1 << 20;

struct Peer::Step {
  const StepContext& context;
  std::vector<Effect>& effects;

  Time now() const { return context.now; }
  template <class T>
  void emit(T effect) {
    effects.emplace_back(std::move(effect));
  }
};

}  // namespace fedge::swarm
