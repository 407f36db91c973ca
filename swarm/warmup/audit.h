// Audit: whether a tracker followed the rules (the paper's section II). It commits to the round's seed before
// the round, and reveals the seed and the log of the warm-up afterwards. A client draws the overlay again and
// checks every transfer. Also the single place for what is drawn from a seed. Pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/crypto/sha256.h"
#include "core/result.h"
#include "swarm/warmup/config.h"
#include "swarm/warmup/universe.h"

namespace fedge::swarm {

// The random stream that a round's overlay is drawn from.
Rng overlay_rng(std::uint64_t seed);

// The random choices of a tracker for a round.
struct RoundDraw {
  RoundDraw(const WarmupConfig& config, std::uint64_t seed);
  Overlay overlay;
  Universe universe;
};

// Transfers by slot, in the order in which they were scheduled.
using WarmupLog = std::vector<std::vector<Transfer>>;

struct Budgets {
  std::vector<std::uint32_t> up;  // chunks per slot, by client
  std::vector<std::uint32_t> down;
};

// SHA-256 of the seed with a label. It hides the seed only as well as the seed's 64 bits allow.
Digest commit_to_seed(std::uint64_t seed);

struct Revealed {
  std::uint64_t seed = 0;
  WarmupLog log;
};
// Returns the first violation. kCorrupt: the seed does not match the commitment. kRefused: a transfer is not
// between neighbours of the seed's overlay, is repeated, gives an owner its own chunk (unless
// config.blended), names a client or chunk that does not exist, or exceeds a budget of its slot. Time:
// O(transfers). Memory: n K bits per client.
Result<void> audit(const Digest& commitment, const WarmupConfig& config, const Budgets& budgets,
                   const Revealed& revealed);

}  // namespace fedge::swarm
