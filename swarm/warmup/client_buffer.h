// ClientBuffer: the chunks that a client holds, and those of them that an honest client sends during the
// warm-up (the paper's section III: cover-set gating and owner throttling). The eligible chunks B_u are the
// foreign chunks X_u and O_u <= kappa own chunks. Own chunks become eligible when |X_u| + kappa >= k. They
// are drawn anew in each round and fixed for it (our reconstruction). Memory: two bits per chunk of the
// universe. Not thread-safe.
#pragma once

#include <cstddef>
#include <vector>

#include "core/rng.h"
#include "swarm/warmup/universe.h"

namespace fedge::swarm {

struct Gate {
  bool gating = true;     // false: every chunk held is eligible from the start
  std::size_t k = 0;      // size of the cover set
  std::size_t kappa = 1;  // maximum number of eligible own chunks
};

class ClientBuffer {
 public:
  // Starts with the client's own chunks only. `universe`: total number of chunks.
  ClientBuffer(std::size_t universe, std::vector<Chunk> own, Gate gate, Rng rng);

  // Adds a chunk of another client. False if it is held already.
  bool receive(Chunk chunk);

  const ChunkSet& held() const { return held_; }
  const ChunkSet& eligible() const { return eligible_; }
  std::size_t foreign() const { return held_.count() - own_; }  // |X_u|
  std::size_t own_eligible() const { return own_eligible_; }    // O_u

 private:
  void open_gate();

  std::size_t own_;  // number of own chunks
  Gate gate_;
  std::vector<Chunk> released_;  // own chunks that become eligible
  ChunkSet held_;
  ChunkSet eligible_;
  std::size_t own_eligible_ = 0;
};

}  // namespace fedge::swarm
