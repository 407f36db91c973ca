// FrameWriter: the frames to be written on a link. Control frames go first. At most one chunk is being
// written, piece by piece through a borrowed buffer. While the link waits, the buffer is returned, and the
// rest of the piece is read again later. So memory depends on the links that are writing now. A peer that
// takes few bytes at a time costs one piece each time, however large its chunks are. No socket.
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
  // Control bytes that have not been written.
  std::size_t control_size() const { return waiting_.size() + (due_ ? 0 : frame_size_ - written_); }
  bool idle() const { return waiting_.empty() && between_frames(); }
  // Whether no frame is half written, so that the next one may be chosen.
  bool between_frames() const { return written_ == frame_size_; }

  // The bytes to write next; empty if there are none. Finishes a begun frame first. An error means that the
  // rest of a half-written chunk cannot be read; the link must end.
  Result<std::span<const std::byte>> next();
  void wrote(std::size_t bytes);
  // Reads the chunk's first piece and begins its frame; returns the frame's size. Only if between_frames().
  Result<std::size_t> begin_chunk(const ChunkSender::Due& due);
  // The link waits: returns the chunk's buffer until it continues.
  void set_aside() { piece_.give_back(); }
  // Drops all control frames that have not been begun.
  void drop_waiting() { waiting_.clear(); }

 private:
  Result<void> read_piece();
  void end_frame();

  std::string waiting_;
  std::string writing_;                  // control frames being written, unless `due_` is
  std::optional<ChunkSender::Due> due_;  // the chunk being written
  ChunkBuffer piece_;                    // part of its frame; empty after set_aside()
  std::size_t piece_begin_ = 0;          // offset in the frame
  std::size_t piece_end_ = 0;
  std::size_t frame_size_ = 0;  // of the frame or frames being written
  std::size_t written_ = 0;
};

}  // namespace fedge::protocol
