#include "protocol/session/chunk_buffer.h"

#include <algorithm>
#include <array>

namespace fedge::protocol {
namespace {

// A thread keeps so many that nobody has borrowed, the largest up to a size; the rest goes back to the heap.
constexpr std::size_t kIdle = 8;
constexpr std::size_t kMaxIdleSize = 1 << 20;

thread_local std::array<AlignedBuffer<std::byte>, kIdle> idle;

}  // namespace

ChunkBuffer ChunkBuffer::borrow(std::size_t size) {
  ChunkBuffer buffer;
  const auto fits = std::ranges::find_if(idle, [&](const auto& memory) { return memory.size() >= size; });
  buffer.memory_ = fits != idle.end() ? std::exchange(*fits, {}) : AlignedBuffer<std::byte>(size);
  return buffer;
}

ChunkBuffer& ChunkBuffer::operator=(ChunkBuffer&& other) noexcept {
  give_back();
  memory_ = std::exchange(other.memory_, {});
  return *this;
}

void ChunkBuffer::give_back() noexcept {
  AlignedBuffer<std::byte> memory = std::exchange(memory_, {});
  if (memory.size() == 0 || memory.size() > kMaxIdleSize) return;
  const auto smallest = std::ranges::min_element(idle, {}, [](const auto& other) { return other.size(); });
  if (smallest->size() < memory.size()) *smallest = std::move(memory);
}

}  // namespace fedge::protocol
