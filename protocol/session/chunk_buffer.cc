#include "protocol/session/chunk_buffer.h"

#include <algorithm>
#include <array>

#include "protocol/limits.h"

namespace fedge::protocol {
namespace {

// Limits for the unused buffers that a thread keeps; further ones are freed.
constexpr std::size_t kIdle = 8;
constexpr std::size_t kIdleBytes = 2 * kMaxChunkSize;

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
  const auto smallest = std::ranges::min_element(idle, {}, [](const auto& other) { return other.size(); });
  if (smallest->size() >= memory.size()) return;
  std::size_t bytes = memory.size() - smallest->size();
  for (const auto& other : idle) bytes += other.size();
  if (bytes <= kIdleBytes) *smallest = std::move(memory);
}

}  // namespace fedge::protocol
