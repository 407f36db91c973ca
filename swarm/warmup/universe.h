// Universe: the chunks of all updates of a round (script C of the paper, section II), numbered 0 to n K - 1
// at random, so that a number reveals nothing about its owner or related chunks. Also Transfer, a chunk sent
// from one client to another. Immutable and thread-safe; 4 bytes per chunk.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/rng.h"
#include "swarm/chunk_set.h"
#include "swarm/warmup/overlay.h"

namespace fedge::swarm {

using Chunk = std::uint32_t;

class Universe {
 public:
  Universe(std::size_t owners, std::size_t chunks_each, Rng rng);

  std::size_t size() const { return owner_.size(); }
  std::size_t owners() const { return own_.size(); }
  std::size_t chunks_each() const { return own_.empty() ? 0 : own_.front().size(); }
  // The owner of a chunk's update; also the number of its descriptor.
  Pseudonym owner(Chunk chunk) const { return owner_[chunk]; }
  const std::vector<Chunk>& chunks_of(Pseudonym owner) const { return own_[owner]; }  // in random order

  // The owners whose chunks are all in `held` (A_v of section II), ascending. O(chunks held).
  std::vector<Pseudonym> reconstructable(const ChunkSet& held) const;

 private:
  std::vector<Pseudonym> owner_;         // by chunk
  std::vector<std::vector<Chunk>> own_;  // by owner
};

struct Transfer {
  Pseudonym from = 0;
  Pseudonym to = 0;
  Chunk chunk = 0;
  auto operator<=>(const Transfer&) const = default;
};

}  // namespace fedge::swarm
