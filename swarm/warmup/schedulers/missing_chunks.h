// MissingChunks: iterates over the chunks that one receiver lacks and its neighbours offer (M_v of the paper,
// section IV). The order is by class of rarity; within a class it starts at a random word of the chunk
// numbers, which are random themselves. Belongs to one slot and one receiver. Memory: one bit per chunk.
// Construction reads one set per neighbour.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "swarm/warmup/schedulers/schedulers.h"

namespace fedge::swarm {

class MissingChunks {
 public:
  // `slot` must outlive it. Neighbours without upload budget offer nothing.
  MissingChunks(const SlotState& slot, Pseudonym receiver, ChunkOrder order, Rng rng);

  // The next chunk; each chunk is returned once.
  std::optional<Chunk> next();
  // Restricts the remaining chunks to those that these neighbours offer. Costs as much as construction.
  void restrict_to(std::span<const Pseudonym> neighbours);

 private:
  std::vector<std::uint64_t> offers_of(std::span<const Pseudonym> neighbours) const;
  void skip_empty_classes();
  void load();

  const SlotState* slot_;
  ChunkOrder order_;
  std::vector<std::uint64_t> missing_;
  std::size_t first_word_ = 0;
  std::size_t step_ = 0;   // words after the first
  std::size_t class_ = 1;  // class of rarity; class 0 has no holders
  std::size_t word_ = 0;
  std::uint64_t bits_ = 0;  // bits of the word not returned yet
  std::uint64_t last_bit_ = 0;
};

}  // namespace fedge::swarm
