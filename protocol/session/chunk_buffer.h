// ChunkBuffer: memory for the payload of one frame on its way in or out. A link has one only while a chunk is
// half read or half written; the thread's links hand the same few on to each other, which stay in the
// processor's cache. Never cleared: whoever borrows one writes before he reads.
#pragma once

#include <cstddef>
#include <span>
#include <utility>

#include "core/aligned_buffer.h"

namespace fedge::protocol {

class ChunkBuffer {
 public:
  ChunkBuffer() = default;
  // At least so many bytes, 64-byte aligned.
  static ChunkBuffer borrow(std::size_t size);
  ChunkBuffer(ChunkBuffer&& other) noexcept : memory_(std::exchange(other.memory_, {})) {}
  ChunkBuffer& operator=(ChunkBuffer&& other) noexcept;
  ~ChunkBuffer() { give_back(); }

  // Empty if nothing has been borrowed.
  std::span<std::byte> span() { return memory_.span(); }
  std::span<const std::byte> span() const { return memory_.span(); }
  void give_back() noexcept;

 private:
  AlignedBuffer<std::byte> memory_;
};

}  // namespace fedge::protocol
