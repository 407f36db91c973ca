// Frame: the unit of transfer on a connection: sixteen fixed bytes, a protobuf header, and for a chunk its
// raw payload. These pure functions see a peer's bytes first: they compare every length with its limit
// before anything is allocated. docs/PROTOCOL.md describes the bytes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/result.h"
#include "protocol/limits.h"

namespace fedge::protocol {

// The type of a frame. Links handle these five themselves; messages.h has the table of all others.
enum class MessageType : std::uint16_t {
  kPing = 4,
  kPong = 5,
  kChunkRequest = 16,
  kChunk = 17,
  kChunkRefused = 18,
};

enum class Sender : std::uint8_t { kConnectingSide, kAcceptingSide, kEither, kCoordinator, kClient };

// A row of the table of frame types.
struct FrameType {
  MessageType type{};
  const char* name = "";  // "train_request" etc., for logs and errors
  Sender sender = Sender::kEither;
  bool greeting = false;  // allowed before authorisation
};

// Null for an undefined number.
const FrameType* find_frame_type(MessageType type);
// "unknown" for an undefined number.
const char* name_of(MessageType type);

struct FrameHeader {
  MessageType type = MessageType::kPing;
  std::uint32_t header_size = 0;
  std::uint32_t payload_size = 0;
  bool operator==(const FrameHeader&) const = default;
};

struct FrameLimits {
  std::size_t max_header = kMaxHeader;
  std::size_t max_payload = kMaxChunkSize;
  // Only the messages that are allowed before authorisation.
  bool greetings_only = false;
};
inline constexpr FrameLimits kUnauthorisedLimits{kMaxHeaderUnauthorised, 0, true};

using FrameHeaderBytes = std::array<std::byte, kFrameHeaderSize>;

FrameHeaderBytes encode_frame_header(const FrameHeader& header);
// kInvalid for another protocol's bytes or a payload that the type may not have, kUnsupported for an
// unknown type or flag, kResource for a length above its limit, kRefused for a type not allowed before
// authorisation.
Result<FrameHeader> parse_frame_header(std::span<const std::byte, kFrameHeaderSize> bytes,
                                       const FrameLimits& limits);

}  // namespace fedge::protocol
