// Fuzz target of the payload codecs, which the unit tests replay: a payload after four bytes that declare it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "core/check.h"
#include "protocol/codecs/raw_size.h"
#include "protocol/limits.h"
#include "tests/support/payloads.h"

namespace fedge::fuzz {

// Byte 0: the codec; 128 and more: with zstd. Byte 1: levels of QSGD. Bytes 2 and 3: the number of values;
// above 32,767, each further one counts eight. With zstd, the largest size that the codec permits is
// declared. Decoded values must be finite, and equal for every way of reading.
inline void feed_payload(std::span<const std::byte> bytes) {
  if (bytes.size() < 5) return;
  const auto octet = [&](std::size_t i) { return std::to_integer<std::uint32_t>(bytes[i]); };
  const auto codec = static_cast<protocol::Codec>(octet(0) % 6);
  const std::uint32_t levels = codec == protocol::Codec::kQsgd ? 1 + octet(1) % protocol::kMaxQsgdLevels : 0;
  const std::size_t number = octet(2) + 256 * octet(3);
  const std::size_t values = number < 32'768 ? number + 1 : (number - 32'767) * 8;
  protocol::EncodedPayload payload{.codec = codec, .levels = levels};
  payload.bytes.assign(bytes.begin() + 4, bytes.end());
  if (octet(0) >= 128) payload.raw_size = protocol::raw_size_bounds(codec, levels, values).max;
  const auto result = protocol::decoded(payload, values);
  if (!result) {
    FEDGE_CHECK(!result.error().message.empty(), "an error says what is wrong");
    return;
  }
  FEDGE_CHECK(codec == protocol::Codec::kFloat32 || protocol::all_finite(*result), "decoded to no number");
  const auto again = protocol::decoded(payload, values, 1 + octet(4));
  FEDGE_CHECK(again && protocol::same_bits(*again, *result), "the way of reading changes the values");
}

}  // namespace fedge::fuzz
