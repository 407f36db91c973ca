// What the fuzz target of the payload codecs feeds, and the unit tests replay: a payload behind four bytes
// that say how it is declared.
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

// Byte 0: the codec, and from 128 on zstd. Byte 1: levels of QSGD. Bytes 2 and 3: the number of values;
// from 32,768 on eight times what is above 32,767. With zstd, the largest size the codec allows is
// declared. Whatever can be decoded must come out finite, and the same however it is read.
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
