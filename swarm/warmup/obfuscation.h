// Before a round's first slot (the paper's section III): owners spray some of their chunks to clients that
// are no neighbours, and everybody draws how long it waits before it sends. Pure functions.
#pragma once

#include <cstddef>
#include <vector>

#include "core/result.h"
#include "swarm/warmup/config.h"
#include "swarm/warmup/universe.h"

namespace fedge::swarm {

// Whom an owner sprays to.
struct SprayTo {
  bool neighbours = false;  // to them as well as to those who are none
  bool relayed = false;     // of those, to who has a neighbour in common with it, over which the chunk can go
};
SprayTo spray_to(const WarmupConfig& config);

// sigma random chunks of each owner, each sent once, to a client drawn uniformly of these. Ordered by owner.
// kInvalid if sigma is more than an update has, or there is nobody to whom somebody could send.
Result<std::vector<Transfer>> spray(const Overlay& overlay, const Universe& universe, std::size_t sigma,
                                    SprayTo to, Rng rng);

// The neighbours that both have, ascending.
std::vector<Pseudonym> common_neighbours(const Overlay& overlay, Pseudonym a, Pseudonym b);

// The first slot in which each may send: uniform on 0 to bound - 1; `bound` (T_lag) must be positive.
std::vector<std::size_t> draw_lags(std::size_t nodes, std::size_t bound, Rng rng);

}  // namespace fedge::swarm
