// Frame: the unit on a connection. Sixteen fixed bytes, a protobuf header, and for a chunk its raw
// payload. This is the first thing that sees a peer's bytes: pure functions that compare every length
// with a limit before anyone allocates for it. The bytes are in docs/PROTOCOL.md.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/result.h"
#include "protocol/limits.h"

namespace fedge::protocol {

enum class MessageType : std::uint16_t {
  kHello = 1,
  kWelcome = 2,
  kGoodbye = 3,
  kPing = 4,
  kPong = 5,
  kChunkRequest = 16,
  kChunk = 17,
  kChunkRefused = 18,
  kRunDescription = 32,
  kTrainRequest = 33,
  kUpdateOffer = 34,
  kTaskFailed = 35,
  kUpdateVerdict = 36,
  kCancelTask = 37,
  kRunEnded = 38,
  kRunAnswer = 39,
  kPublishRecord = 40,
  kSwarmMembers = 41,
  kServerlessUpdate = 42,
  kUpdateHeld = 43,
  kAggregateUpdates = 44,
  kAggregateMade = 45,
  kWarmupPlan = 46,
  kWarmupSlot = 47,
  kChunksHeld = 48,
  kChunksAdded = 49,
  kSwarmState = 50,
  kChunkCancelled = 51,
  kSealedChunk = 52,
  kWarmupOver = 56,
  kSecureKeys = 60,
  kSecureRoster = 61,
  kSecureShares = 62,
  kSecurePeerShares = 63,
  kSecureSurvivors = 64,
  kSecureConsent = 65,
  kSecureConsents = 66,
  kSecureUnmask = 67,
};

// "train_request", or "unknown" for a number that is none of the above.
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
  // Only Hello, Welcome and Goodbye: what strangers may say to each other.
  bool greetings_only = false;
};
inline constexpr FrameLimits kUnauthorisedLimits{kMaxHeaderUnauthorised, 0, true};

using FrameHeaderBytes = std::array<std::byte, kFrameHeaderSize>;

FrameHeaderBytes encode_frame_header(const FrameHeader& header);
// kInvalid for another protocol's bytes or a payload where none belongs, kUnsupported for an unknown
// type or flag, kResource for a length above its limit, kRefused for a type that must wait.
Result<FrameHeader> parse_frame_header(std::span<const std::byte, kFrameHeaderSize> bytes,
                                       const FrameLimits& limits);

}  // namespace fedge::protocol
