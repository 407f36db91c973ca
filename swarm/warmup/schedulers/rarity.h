// Rarity: the number of holders of each chunk, updated as chunks move, and the set of chunks in each class of
// rarity: 1, 2-3, 4-7, 8-15 holders and so on. Rarest first goes by class, so that a scheduler finds the
// rarest of a hundred thousand chunks by reading words (reconstructed; the paper uses exact counts). Not
// thread-safe.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "swarm/chunk_set.h"

namespace fedge::swarm {

class Rarity {
 public:
  static constexpr std::size_t kClasses = 14;  // up to 8191 holders

  explicit Rarity(std::size_t chunks) : holders_(chunks) {
    members_.fill(ChunkSet(chunks));
    members_[0] = ChunkSet::full(chunks);
  }

  void add_holder(std::size_t chunk) { change(chunk, holders_[chunk] + 1); }
  void remove_holder(std::size_t chunk) {
    FEDGE_CHECK(holders_[chunk] > 0, "a chunk that somebody holds");
    change(chunk, holders_[chunk] - 1);
  }

  std::size_t holders(std::size_t chunk) const { return holders_[chunk]; }
  static std::size_t class_of(std::size_t holders) {
    return static_cast<std::size_t>(std::bit_width(holders));
  }
  const ChunkSet& members(std::size_t rarity_class) const { return members_[rarity_class]; }
  // Number of chunks with at least one holder.
  std::size_t available() const { return holders_.size() - members_[0].count(); }

 private:
  void change(std::size_t chunk, std::size_t holders) {
    const std::size_t before = class_of(holders_[chunk]);
    const std::size_t after = class_of(holders);
    holders_[chunk] = static_cast<std::uint32_t>(holders);
    if (before == after) return;
    members_[before].remove(chunk);
    members_[after].add(chunk);
  }

  std::vector<std::uint32_t> holders_;
  std::array<ChunkSet, kClasses> members_;
};

}  // namespace fedge::swarm
