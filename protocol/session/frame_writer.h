// FrameWriter: what waits to be written on a link, in order of importance. Control frames go first;
// of chunks there is at most the one being written, in a buffer that is used again, its headers right
// in front of its payload so that a frame is one span. No socket.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "core/aligned_buffer.h"
#include "core/result.h"
#include "protocol/chunks/sender.h"

namespace fedge::protocol {

class FrameWriter {
 public:
  void queue(const std::string& frame) { waiting_ += frame; }
  // Control bytes not yet written.
  std::size_t control_size() const {
    return waiting_.size() + (chunk_in_hand_ ? 0 : writing_.size() - written_);
  }
  bool idle() const { return waiting_.empty() && rest().empty(); }
  // No frame is half written: the next one may be chosen.
  bool between_frames() const { return rest().empty(); }

  // The bytes to write next; empty if there are none. A frame once begun is finished first.
  std::span<const std::byte> next();
  void wrote(std::size_t bytes) { written_ += bytes; }
  // Reads the chunk into the buffer and begins its frame; between_frames() only.
  Result<void> begin_chunk(const ChunkSender::Due& due);
  // Gives the chunk's memory back until it is needed again.
  void release_chunk();
  // Everything that has not been begun.
  void drop_waiting() { waiting_.clear(); }

 private:
  std::span<const std::byte> rest() const;

  std::string waiting_;
  std::string writing_;  // control frames being written, unless a chunk is
  AlignedBuffer<std::byte> chunk_;
  std::span<const std::byte> chunk_frame_;
  bool chunk_in_hand_ = false;
  std::size_t written_ = 0;
};

}  // namespace fedge::protocol
