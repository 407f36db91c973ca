// WarmupState: what a tracker knows of a warm-up between two slots: which clients take part, which chunks
// each one has got, and whether the warm-up has covered every client. Used by RoundWarmup, and by the studies
// of lab/. Memory: one bit per client and chunk. Not thread-safe.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "swarm/warmup/config.h"
#include "swarm/warmup/schedulers/rarity.h"
#include "swarm/warmup/universe.h"

namespace fedge::swarm {

class WarmupState {
 public:
  // All clients take part, and hold the chunks of their own updates only.
  WarmupState(const WarmupConfig& config, Universe universe);

  const Universe& universe() const { return universe_; }
  const Rarity& rarity() const { return rarity_; }
  bool active(Pseudonym client) const { return active_[client]; }
  std::size_t size() const;  // number of clients that take part
  // The chunks that the client got, own ones only if they were scheduled (config.blended).
  const ChunkSet& got(Pseudonym client) const { return got_[client]; }
  std::size_t foreign(Pseudonym client) const { return got_[client].count() - own_got_[client]; }
  // The number of foreign chunks that the client lacks when `coming` more have arrived.
  std::size_t lacks(Pseudonym client, std::size_t coming = 0) const;
  // Whether every client that takes part has k chunks of others.
  bool covered() const;

  // False if the client has got this chunk before.
  bool take(Pseudonym client, Chunk chunk);
  // The client is gone, and with it the chunks that it holds.
  void leave(Pseudonym client);

 private:
  Universe universe_;
  std::size_t k_;
  Rarity rarity_;
  std::vector<bool> active_;
  std::vector<ChunkSet> got_;
  std::vector<std::size_t> own_got_;
};

}  // namespace fedge::swarm
