// Whether a tracker kept to the rules: it commits to the round's seed before the round, and reveals it with
// the log of the warm-up afterwards; a client draws the overlay again and looks at every transfer (the
// paper's section II). Also what is drawn from a seed, in one place. Pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/crypto/sha256.h"
#include "core/result.h"
#include "swarm/warmup/config.h"
#include "swarm/warmup/universe.h"

namespace fedge::swarm {

// Of which a round's overlay is drawn.
Rng overlay_rng(std::uint64_t seed);

// What a tracker draws for a round.
struct RoundDraw {
  RoundDraw(const WarmupConfig& config, std::uint64_t seed);
  Overlay overlay;
  Universe universe;
};

// By slot, in the order in which they were scheduled.
using WarmupLog = std::vector<std::vector<Transfer>>;

struct Budgets {
  std::vector<std::uint32_t> up;  // chunks a slot, by client
  std::vector<std::uint32_t> down;
};

// SHA-256 of the seed under a name of its own. It hides no more than the seed's 64 bits.
Digest commit_to_seed(std::uint64_t seed);

struct Revealed {
  std::uint64_t seed = 0;
  WarmupLog log;
};
// The first thing that is wrong: kCorrupt if the seed is not the one committed to, kRefused if a transfer is
// not between neighbours of the overlay that it gives, comes twice, brings an owner its own chunk, names what
// does not exist, or exceeds a budget of its slot. O(transfers), n K bits a client.
Result<void> audit(const Digest& commitment, const WarmupConfig& config, const Budgets& budgets,
                   const Revealed& revealed);

}  // namespace fedge::swarm
