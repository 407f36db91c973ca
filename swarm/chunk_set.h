// ChunkSet: a set of chunks of an object with a fixed number of chunks, one bit each. Iteration is by index,
// so that nothing depends on memory addresses. Not thread-safe.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/check.h"

namespace fedge::swarm {

class ChunkSet {
 public:
  explicit ChunkSet(std::size_t size = 0) : size_(size), words_((size + 63) / 64) {}
  static ChunkSet full(std::size_t size);

  std::size_t size() const { return size_; }
  std::size_t count() const { return count_; }  // O(1)
  bool empty() const { return count_ == 0; }
  bool complete() const { return count_ == size_; }
  bool has(std::size_t chunk) const {
    return chunk < size_ && ((words_[chunk / 64] >> (chunk % 64)) & 1) != 0;
  }
  // add(): false if the chunk was present. remove(): false if it was absent.
  bool add(std::size_t chunk);
  bool remove(std::size_t chunk);
  // Adds all chunks of another set of the same size.
  void add_all(const ChunkSet& other);

  // Number of chunks in both sets, which must have the same size.
  std::size_t count_common(const ChunkSet& other) const;

  // 64 chunks per word, the lowest index in the lowest bit; bits from size() on are 0.
  std::span<const std::uint64_t> words() const { return words_; }

  // Calls take(chunk) for each chunk, ascending.
  template <class Take>
  void for_each(Take&& take) const {
    for (std::size_t i = 0; i < words_.size(); ++i) for_each_bit(i, words_[i], take);
  }
  // The same for chunks of this set that `without`, of the same size, lacks.
  template <class Take>
  void for_each_without(const ChunkSet& without, Take&& take) const {
    FEDGE_CHECK(without.size_ == size_, "sets of the same chunks");
    for (std::size_t i = 0; i < words_.size(); ++i) for_each_bit(i, words_[i] & ~without.words_[i], take);
  }

  // The same for chunks that both sets, of the same size, have.
  template <class Take>
  void for_each_common(const ChunkSet& other, Take&& take) const {
    FEDGE_CHECK(other.size_ == size_, "sets of the same chunks");
    for (std::size_t i = 0; i < words_.size(); ++i) for_each_bit(i, words_[i] & other.words_[i], take);
  }

  // The encoding of ChunksHeld: chunk i is bit i % 8 of byte i / 8.
  std::vector<std::byte> bytes() const;
  // Nothing if these are not the bytes of a set of this size.
  static std::optional<ChunkSet> from_bytes(std::span<const std::byte> bytes, std::size_t size);

  bool operator==(const ChunkSet&) const = default;

 private:
  template <class Take>
  static void for_each_bit(std::size_t word, std::uint64_t bits, Take& take) {
    for (; bits != 0; bits &= bits - 1) take(word * 64 + static_cast<std::size_t>(std::countr_zero(bits)));
  }

  std::size_t size_ = 0;
  std::size_t count_ = 0;
  std::vector<std::uint64_t> words_;
};

}  // namespace fedge::swarm
