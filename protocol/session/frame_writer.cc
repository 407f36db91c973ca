#include "protocol/session/frame_writer.h"

#include <cstring>

#include "core/check.h"

namespace fedge::protocol {
namespace {

constexpr std::size_t kHeadroom = 2 * kCacheLine;  // for both headers of a chunk
constexpr std::size_t kKeptControl = 64 << 10;

}  // namespace

std::span<const std::byte> FrameWriter::rest() const {
  const std::span<const std::byte> all = chunk_in_hand_ ? chunk_frame_ : std::as_bytes(std::span(writing_));
  return all.subspan(written_);
}

std::span<const std::byte> FrameWriter::next() {
  if (rest().empty() && !waiting_.empty()) {
    if (writing_.capacity() > kKeptControl) writing_ = std::string();
    writing_.clear();
    std::swap(writing_, waiting_);
    chunk_in_hand_ = false;
    written_ = 0;
  }
  return rest();
}

Result<void> FrameWriter::begin_chunk(const ChunkSender::Due& due) {
  FEDGE_CHECK(between_frames(), "a frame is half written");
  chunk_frame_ = {};
  chunk_in_hand_ = true;
  written_ = 0;
  const std::size_t size = kHeadroom + due.length;
  if (chunk_.size() < size) chunk_ = AlignedBuffer<std::byte>(size);
  FEDGE_TRY_VOID(due.source->read(due.chunk.index, chunk_.span().subspan(kHeadroom, due.length)));
  const std::string head = encode_frame(due.chunk, due.length);
  FEDGE_CHECK(head.size() <= kHeadroom, "a chunk's header has grown");
  std::memcpy(chunk_.data() + kHeadroom - head.size(), head.data(), head.size());
  chunk_frame_ = chunk_.span().subspan(kHeadroom - head.size(), head.size() + due.length);
  return {};
}

void FrameWriter::release_chunk() {
  if (!between_frames() || chunk_.size() == 0) return;
  chunk_ = AlignedBuffer<std::byte>();
  chunk_frame_ = {};
  writing_.clear();
  chunk_in_hand_ = false;
  written_ = 0;
}

}  // namespace fedge::protocol
