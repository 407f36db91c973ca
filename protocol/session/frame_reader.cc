#include "protocol/session/frame_reader.h"

#include "core/check.h"

namespace fedge::protocol {
namespace {

// Keep header buffers up to this size; free larger ones.
constexpr std::size_t kKeptHeader = 64 << 10;

}  // namespace

std::span<std::byte> FrameReader::space() {
  switch (part_) {
    case Part::kFixed:
      return std::span<std::byte>(fixed_).subspan(filled_);
    case Part::kHeader:
      return std::span(header_).first(frame_.header_size).subspan(filled_);
    case Part::kPayload:
      return payload_.span().first(frame_.payload_size).subspan(filled_);
  }
  return {};
}

Result<FrameReader::Event> FrameReader::filled(std::size_t bytes, const FrameLimits& limits) {
  filled_ += bytes;
  if (part_ == Part::kFixed) {
    if (filled_ < fixed_.size()) return Event::kMore;
    FEDGE_TRY(frame, parse_frame_header(fixed_, limits));
    frame_ = frame;
    part_ = Part::kHeader;
    filled_ = 0;
    if (header_.size() < frame_.header_size) header_.resize(frame_.header_size);
    return frame_.header_size > 0 ? Event::kMore : after_header();
  }
  if (part_ == Part::kHeader) return filled_ < frame_.header_size ? Event::kMore : after_header();
  return filled_ < frame_.payload_size ? Event::kMore : Event::kFrame;
}

FrameReader::Event FrameReader::after_header() {
  if (frame_.type != MessageType::kChunk) return Event::kFrame;
  part_ = Part::kPayload;
  filled_ = 0;
  return Event::kPayload;
}

std::size_t FrameReader::in_hand() const {
  const std::size_t fixed = part_ == Part::kFixed ? 0 : fixed_.size();
  const std::size_t header = part_ == Part::kPayload ? frame_.header_size : 0;
  return fixed + header + filled_;
}

void FrameReader::expect_payload() {
  FEDGE_CHECK(part_ == Part::kPayload && frame_.payload_size > 0, "no payload is expected");
  payload_ = ChunkBuffer::borrow(frame_.payload_size);
}

void FrameReader::next() {
  part_ = Part::kFixed;
  filled_ = 0;
  frame_ = FrameHeader{};
  payload_.give_back();
  if (header_.size() > kKeptHeader) header_ = {};
}

}  // namespace fedge::protocol
