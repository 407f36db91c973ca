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

// "train_request" etc.; "unknown" for an undefined number.
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
  // Only Hello, Welcome and Goodbye: the messages before authorisation.
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
