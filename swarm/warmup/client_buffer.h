// ClientBuffer: what one client holds and what of it an honest one sends during the warm-up (the paper's
// section III: cover-set gating and owner throttling). B_u, what is eligible, is all that it holds of others
// (X_u) and O_u <= kappa of its own chunks, drawn anew each round (that they are fixed for the round is
// reconstructed). Its own become eligible when |X_u| + kappa >= k. Two bits a chunk of the universe. Not
// thread-safe.
#pragma once

#include <cstddef>
#include <vector>

#include "core/rng.h"
#include "swarm/warmup/universe.h"

namespace fedge::swarm {

struct Gate {
  bool gating = true;     // false: everything held is eligible from the start
  std::size_t k = 0;      // the cover set's size
  std::size_t kappa = 1;  // own chunks that may become eligible
};

class ClientBuffer {
 public:
  // Holds its own chunks, of so many in the universe, and nothing else.
  ClientBuffer(std::size_t universe, std::vector<Chunk> own, Gate gate, Rng rng);

  // False if it holds the chunk already.
  bool receive(Chunk chunk);

  const ChunkSet& held() const { return held_; }
  const ChunkSet& eligible() const { return eligible_; }
  std::size_t foreign() const { return held_.count() - own_; }  // |X_u|
  std::size_t own_eligible() const { return own_eligible_; }    // O_u

 private:
  void open_gate();

  std::size_t own_;  // chunks
  Gate gate_;
  std::vector<Chunk> released_;  // the own chunks that become eligible
  ChunkSet held_;
  ChunkSet eligible_;
  std::size_t own_eligible_ = 0;
};

}  // namespace fedge::swarm
