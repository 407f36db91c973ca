// Obfuscation before a round's first slot (the paper's section III): owners spray some of their chunks to
// clients that are not neighbours, and each client draws how long it waits before it sends. Pure functions.
#pragma once

#include <cstddef>
#include <vector>

#include "core/result.h"
#include "swarm/warmup/config.h"
#include "swarm/warmup/universe.h"

namespace fedge::swarm {

// The clients that an owner may spray to.
struct SprayTo {
  bool neighbours = false;  // also its neighbours
  bool relayed = false;     // only clients with a common neighbour, which can relay the chunk
};
SprayTo spray_to(const WarmupConfig& config);

// Sprays sigma random chunks of each owner, each to one client drawn uniformly from `to`. Ordered by owner.
// kInvalid if sigma is more than an update's chunks, or if an owner has no possible receiver.
Result<std::vector<Transfer>> spray(const Overlay& overlay, const Universe& universe, std::size_t sigma,
                                    SprayTo to, Rng rng);

// The common neighbours of a and b, ascending.
std::vector<Pseudonym> common_neighbours(const Overlay& overlay, Pseudonym a, Pseudonym b);

// The first slot in which each client may send, uniform on 0 to bound - 1. `bound` (T_lag) must be positive.
std::vector<std::size_t> draw_lags(std::size_t nodes, std::size_t bound, Rng rng);

}  // namespace fedge::swarm
