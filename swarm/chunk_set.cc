#include "swarm/chunk_set.h"

namespace fedge::swarm {

ChunkSet ChunkSet::full(std::size_t size) {
  ChunkSet set(size);
  for (std::uint64_t& word : set.words_) word = ~std::uint64_t{0};
  if (size % 64 != 0) set.words_.back() = (std::uint64_t{1} << (size % 64)) - 1;
  set.count_ = size;
  return set;
}

bool ChunkSet::add(std::size_t chunk) {
  FEDGE_CHECK(chunk < size_, "a chunk of the set");
  if (has(chunk)) return false;
  words_[chunk / 64] |= std::uint64_t{1} << (chunk % 64);
  ++count_;
  return true;
}

bool ChunkSet::remove(std::size_t chunk) {
  if (!has(chunk)) return false;
  words_[chunk / 64] &= ~(std::uint64_t{1} << (chunk % 64));
  --count_;
  return true;
}

void ChunkSet::add_all(const ChunkSet& other) {
  FEDGE_CHECK(other.size_ == size_, "sets of the same chunks");
  count_ = 0;
  for (std::size_t i = 0; i < words_.size(); ++i) {
    words_[i] |= other.words_[i];
    count_ += static_cast<std::size_t>(std::popcount(words_[i]));
  }
}

std::size_t ChunkSet::count_common(const ChunkSet& other) const {
  FEDGE_CHECK(other.size_ == size_, "sets of the same chunks");
  std::size_t common = 0;
  for (std::size_t i = 0; i < words_.size(); ++i)
    common += static_cast<std::size_t>(std::popcount(words_[i] & other.words_[i]));
  return common;
}

std::vector<std::byte> ChunkSet::bytes() const {
  std::vector<std::byte> result((size_ + 7) / 8);
  for (std::size_t i = 0; i < result.size(); ++i)
    result[i] = static_cast<std::byte>(words_[i / 8] >> (i % 8 * 8));
  return result;
}

std::optional<ChunkSet> ChunkSet::from_bytes(std::span<const std::byte> bytes, std::size_t size) {
  ChunkSet set(size);
  if (bytes.size() != (size + 7) / 8) return std::nullopt;
  for (std::size_t i = 0; i < bytes.size(); ++i)
    set.words_[i / 8] |= std::to_integer<std::uint64_t>(bytes[i]) << (i % 8 * 8);
  if (size % 64 != 0 && (set.words_.back() >> (size % 64)) != 0) return std::nullopt;
  for (const std::uint64_t word : set.words_) set.count_ += static_cast<std::size_t>(std::popcount(word));
  return set;
}

}  // namespace fedge::swarm
