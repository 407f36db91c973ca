#include "protocol/session/frame_writer.h"

#include <cstring>

#include "core/check.h"

namespace fedge::protocol {
namespace {

constexpr std::size_t kHeadroom = 2 * kCacheLine;  // for both headers of a chunk
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
  if (chunk_.span().empty()) FEDGE_TRY_VOID(read_chunk());
  const std::size_t end = kHeadroom + due_->length;
  return std::span<const std::byte>(chunk_.span()).first(end).last(frame_size_ - written_);
}

Result<std::size_t> FrameWriter::begin_chunk(const ChunkSender::Due& due) {
  FEDGE_CHECK(between_frames(), "a frame is half written");
  due_ = due;
  if (const auto read = read_chunk(); !read) {
    end_frame();
    return read.error();
  }
  written_ = 0;
  return frame_size_;
}

Result<void> FrameWriter::read_chunk() {
  const std::string head = encode_frame(due_->chunk, due_->length);
  FEDGE_CHECK(head.size() <= kHeadroom, "a chunk's header has grown");
  frame_size_ = head.size() + due_->length;
  chunk_ = ChunkBuffer::borrow(kHeadroom + due_->length);
  const auto buffer = chunk_.span();
  std::memcpy(buffer.data() + kHeadroom - head.size(), head.data(), head.size());
  auto read = due_->source->read(due_->chunk.index, buffer.subspan(kHeadroom, due_->length));
  if (!read) chunk_.give_back();
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
  chunk_.give_back();
  writing_.clear();
  frame_size_ = 0;
  written_ = 0;
}

}  // namespace fedge::protocol
