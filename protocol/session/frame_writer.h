// FrameWriter: what waits to be written on a link, in order of importance. Control frames go first;
// of chunks there is at most the one being written, a piece of it at a time in a buffer borrowed for
// it. While the link has to wait, the buffer is with others and what is left of the piece is read
// again: memory goes with the links that write now, and a peer that takes little at a time costs a
// piece each time, however large its chunks are. No socket.
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
  // that a chunk half written cannot be read on, and is the end of the link.
  Result<std::span<const std::byte>> next();
  void wrote(std::size_t bytes);
  // Reads the chunk's first piece and begins its frame, of which this is the size; between_frames() only.
  Result<std::size_t> begin_chunk(const ChunkSender::Due& due);
  // The link waits: gives a chunk's memory back until it goes on.
  void set_aside() { piece_.give_back(); }
  // Everything that has not been begun.
  void drop_waiting() { waiting_.clear(); }

 private:
  Result<void> read_piece();
  void end_frame();

  std::string waiting_;
  std::string writing_;                  // control frames being written, unless a chunk is
  std::optional<ChunkSender::Due> due_;  // the chunk being written
  ChunkBuffer piece_;                    // of its frame; empty while set aside
  std::size_t piece_begin_ = 0;          // in the frame
  std::size_t piece_end_ = 0;
  std::size_t frame_size_ = 0;  // of what is being written
  std::size_t written_ = 0;
};

}  // namespace fedge::protocol
