// MissingChunks: what one receiver lacks and its neighbours offer (M_v of the paper, section IV), one after
// the other: by class of rarity, within a class from a random word of the numbering on, which is random
// because the numbering is. Belongs to one slot and one receiver. One bit a chunk; making it reads a set a
// neighbour.
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

  // The next one; each comes once.
  std::optional<Chunk> next();
  // From now on only what these neighbours offer. Costs as much as making it.
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
  std::size_t class_ = 1;  // of rarity; nobody holds what is in class 0
  std::size_t word_ = 0;
  std::uint64_t bits_ = 0;  // of the word, that have not come yet
  std::uint64_t last_bit_ = 0;
};

}  // namespace fedge::swarm
