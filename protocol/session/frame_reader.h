// FrameReader: assembles frames from received bytes, in reused buffers. Allocates nothing for a length
// before it has been compared with its limit, and nothing for a payload before the owner has checked the
// header. No socket; a frame is read in place.
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
    kMore,     // incomplete
    kPayload,  // the header is complete: check it, then call expect_payload() or refuse
    kFrame,    // the frame is complete and valid until next()
  };

  // Where to put the next bytes; never empty while a frame is incomplete.
  std::span<std::byte> space();
  // Call after putting `bytes` bytes into space().
  Result<Event> filled(std::size_t bytes, const FrameLimits& limits);
  // After kPayload: allocates the payload, 64-byte aligned.
  void expect_payload();
  // After kFrame: discards the frame.
  void next();

  // Bytes received of the incomplete frame; 0 between frames.
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
  ChunkBuffer payload_;  // while a payload is being received
};

}  // namespace fedge::protocol
