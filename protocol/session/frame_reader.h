// FrameReader: puts frames together from bytes as they come, into buffers that are used again. Nothing
// is allocated for a length before it has been compared with its limit; for a payload, not before the
// owner has looked at the header. No socket; a frame is read in place.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "core/result.h"
#include "protocol/frame.h"
#include "protocol/session/chunk_buffer.h"

namespace fedge::protocol {

class FrameReader {
 public:
  enum class Event {
    kMore,     // nothing to do yet
    kPayload,  // the header is here: look at it, then expect_payload() or refuse
    kFrame,    // the frame is here until next()
  };

  // Where the next bytes belong; never empty while a frame is unfinished.
  std::span<std::byte> space();
  // So many bytes of space() have been filled.
  Result<Event> filled(std::size_t bytes, const FrameLimits& limits);
  // After kPayload: makes room for it, 64-byte aligned.
  void expect_payload();
  // After kFrame: forgets it.
  void next();

  // Bytes of the unfinished frame that are here; 0 between frames.
  std::size_t in_hand() const;
  const FrameHeader& frame() const { return frame_; }
  std::span<const std::byte> header() const { return std::span(header_).first(frame_.header_size); }
  std::span<const std::byte> payload() const { return payload_.span().first(frame_.payload_size); }

 private:
  enum class Part { kFixed, kHeader, kPayload };
  Event after_header();

  Part part_ = Part::kFixed;
  std::size_t filled_ = 0;  // of the current part
  FrameHeaderBytes fixed_{};
  FrameHeader frame_;
  std::vector<std::byte> header_;
  ChunkBuffer payload_;  // while one is coming in
};

}  // namespace fedge::protocol
