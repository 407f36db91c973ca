#include "protocol/session/frame_writer.h"

#include <algorithm>
#include <cstring>

#include "core/check.h"

namespace fedge::protocol {
namespace {

constexpr std::size_t kPiece = 64 << 10;
constexpr std::size_t kKeptControl = 64 << 10;

}  // namespace

Result<std::span<const std::byte>> FrameWriter::next() {
  if (between_frames() && !waiting_.empty()) {
    if (writing_.capacity() > kKeptControl) writing_ = std::string();
    std::swap(writing_, waiting_);
    frame_size_ = writing_.size();
    written_ = 0;
  }
  if (between_frames()) return std::span<const std::byte>();
  if (!due_) return std::as_bytes(std::span(writing_)).subspan(written_);
  if (piece_.span().empty() || written_ == piece_end_) FEDGE_TRY_VOID(read_piece());
  return std::span<const std::byte>(piece_.span()).subspan(written_ - piece_begin_, piece_end_ - written_);
}

Result<std::size_t> FrameWriter::begin_chunk(const ChunkSender::Due& due) {
  FEDGE_CHECK(between_frames(), "a frame is half written");
  due_ = due;
  written_ = 0;
  if (const auto read = read_piece(); !read) {
    end_frame();
    return read.error();
  }
  return frame_size_;
}

Result<void> FrameWriter::read_piece() {
  const std::string head = encode_frame(due_->chunk, due_->length);
  frame_size_ = head.size() + due_->length;
  piece_begin_ = written_;
  piece_end_ = std::min(written_ + kPiece, frame_size_);
  if (piece_.span().empty()) piece_ = ChunkBuffer::borrow(kPiece);
  auto left = piece_.span().first(piece_end_ - piece_begin_);
  std::size_t from = written_;
  if (from < head.size()) {
    const std::size_t part = std::min(head.size() - from, left.size());
    std::memcpy(left.data(), head.data() + from, part);
    left = left.subspan(part);
    from += part;
  }
  auto read = due_->source->read_part(due_->chunk.index, from - head.size(), left);
  if (!read) piece_.give_back();
  return read;
}

void FrameWriter::wrote(std::size_t bytes) {
  written_ += bytes;
  if (!between_frames()) return;
  if (due_) due_->source->sent(due_->chunk.index, frame_size_);
  end_frame();
}

void FrameWriter::end_frame() {
  due_.reset();
  piece_.give_back();
  writing_.clear();
  frame_size_ = 0;
  written_ = 0;
}

}  // namespace fedge::protocol
