// FrameWriter: what waits to be written on a link, in order of importance. Control frames go first;
// of chunks there is at most the one being written, in a buffer borrowed for it, its headers right
// in front of its payload so that a frame is one span. While the link has to wait, the buffer is with
// others and the chunk is read again: memory goes with the links that write now. No socket.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>

#include "core/result.h"
#include "protocol/chunks/sender.h"
#include "protocol/session/chunk_buffer.h"

namespace fedge::protocol {

class FrameWriter {
 public:
  void queue(const std::string& frame) { waiting_ += frame; }
  // Control bytes not yet written.
  std::size_t control_size() const { return waiting_.size() + (due_ ? 0 : frame_size_ - written_); }
  bool idle() const { return waiting_.empty() && between_frames(); }
  // No frame is half written: the next one may be chosen.
  bool between_frames() const { return written_ == frame_size_; }

  // The bytes to write next; empty if there are none. A frame once begun is finished first. An error means
  // that a chunk half written cannot be read again, and is the end of the link.
  Result<std::span<const std::byte>> next();
  void wrote(std::size_t bytes);
  // Reads the chunk and begins its frame, of which this is the size; between_frames() only.
  Result<std::size_t> begin_chunk(const ChunkSender::Due& due);
  // The link waits: gives a chunk's memory back until it goes on.
  void set_aside() { chunk_.give_back(); }
  // Everything that has not been begun.
  void drop_waiting() { waiting_.clear(); }

 private:
  Result<void> read_chunk();
  void end_frame();

  std::string waiting_;
  std::string writing_;                  // control frames being written, unless a chunk is
  std::optional<ChunkSender::Due> due_;  // the chunk being written
  ChunkBuffer chunk_;                    // its frame, behind some room; empty while set aside
  std::size_t frame_size_ = 0;           // of what is being written
  std::size_t written_ = 0;
};

}  // namespace fedge::protocol
