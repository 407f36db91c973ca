// ChunkBuffer: memory for the payload of one frame being sent or received. A link holds one only during a
// chunk. The links of a thread share a few, which stay in the processor's cache. Buffers are not cleared:
// write before reading.
#pragma once

#include <cstddef>
#include <span>
#include <utility>

#include "core/aligned_buffer.h"

namespace fedge::protocol {

class ChunkBuffer {
 public:
  ChunkBuffer() = default;
  // Returns a buffer of at least `size` bytes, 64-byte aligned.
  static ChunkBuffer borrow(std::size_t size);
  ChunkBuffer(ChunkBuffer&& other) noexcept : memory_(std::exchange(other.memory_, {})) {}
  ChunkBuffer& operator=(ChunkBuffer&& other) noexcept;
  ~ChunkBuffer() { give_back(); }

  // Empty without a borrowed buffer.
  std::span<std::byte> span() { return memory_.span(); }
  std::span<const std::byte> span() const { return memory_.span(); }
  void give_back() noexcept;

 private:
  AlignedBuffer<std::byte> memory_;
};

}  // namespace fedge::protocol
