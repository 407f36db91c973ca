// Private to Peer: what each part of a step needs, and the constants they share.
#pragma once

#include <vector>

#include "protocol/limits.h"
#include "swarm/peer/peer.h"

namespace fedge::swarm {

inline constexpr Duration kTick = seconds(1);
// Requests to a neighbour that has not sent much yet.
inline constexpr std::size_t kFewestAsked = 2;
// Chunks that a seeder shows to a neighbour before it has got them.
inline constexpr std::size_t kOffers = 4;
// Bytes handed to a link before it has written them; or one chunk.
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
