#include "protocol/codecs/byte_stream.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/aligned_buffer.h"

namespace fedge::protocol {
namespace {

class ChunkStream final : public ByteStream {
 public:
  ChunkStream(const Manifest& manifest, ChunkSource& chunks)
      : chunks_(chunks), left_(manifest.payload_size), buffer_(manifest.chunk_length(0)) {}

 protected:
  Result<std::span<const std::byte>> refill() override {
    const auto bytes = buffer_.span().first(std::min<std::uint64_t>(left_, buffer_.size()));
    if (!bytes.empty()) FEDGE_TRY_VOID(chunks_.read(next_++, bytes));
    left_ -= bytes.size();
    return std::span<const std::byte>(bytes);
  }

 private:
  ChunkSource& chunks_;
  std::uint64_t left_;
  std::size_t next_ = 0;
  AlignedBuffer<std::byte> buffer_;
};

}  // namespace

std::unique_ptr<ByteStream> make_chunk_stream(const Manifest& manifest, ChunkSource& chunks) {
  return std::make_unique<ChunkStream>(manifest, chunks);
}

Result<bool> ByteStream::at_end() {
  if (window_.empty()) {
    FEDGE_TRY(more, refill());
    window_ = more;
  }
  return window_.empty();
}

Result<void> ByteStream::read(std::span<std::byte> out) {
  while (!out.empty()) {
    FEDGE_TRY(end, at_end());
    if (end) return Error{ErrorCode::kCorrupt, "the payload is truncated"};
    const std::size_t size = std::min(out.size(), window_.size());
    std::memcpy(out.data(), window_.data(), size);
    window_ = window_.subspan(size);
    out = out.subspan(size);
  }
  return {};
}

Result<std::uint8_t> ByteStream::read_byte() {
  std::byte byte{};
  FEDGE_TRY_VOID(read({&byte, 1}));
  return std::to_integer<std::uint8_t>(byte);
}

Result<std::span<const std::byte>> ByteStream::take_some() {
  FEDGE_TRY(end, at_end());
  return end ? window_ : std::exchange(window_, {});
}

}  // namespace fedge::protocol
