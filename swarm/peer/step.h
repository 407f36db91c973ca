// Private to Peer: the context of a step, and a shared constant.
#pragma once

#include <vector>

#include "swarm/peer/peer.h"

namespace fedge::swarm {

inline constexpr Duration kTick = seconds(1);

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
