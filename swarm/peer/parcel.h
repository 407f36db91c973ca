// Parcel: a chunk and its name as the bytes to seal: the object's id, the chunk's index (4 bytes,
// little-endian) and the chunk's bytes. Pure functions.
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "protocol/chunks/chunk_messages.h"

namespace fedge::swarm {

inline std::vector<std::byte> pack(const protocol::Chunk& chunk, std::span<const std::byte> bytes) {
  std::vector<std::byte> packed;
  packed.reserve(chunk.object.size() + 4 + bytes.size());
  for (const auto octet : chunk.object) packed.push_back(static_cast<std::byte>(octet));
  for (int shift = 0; shift < 32; shift += 8) packed.push_back(static_cast<std::byte>(chunk.index >> shift));
  packed.insert(packed.end(), bytes.begin(), bytes.end());
  return packed;
}

// The result refers to bytes of `packed`. Nothing if it is too short.
inline std::optional<std::pair<protocol::Chunk, std::span<const std::byte>>> unpack(
    std::span<const std::byte> packed) {
  protocol::Chunk chunk;
  const std::size_t name = chunk.object.size() + 4;
  if (packed.size() < name) return std::nullopt;
  for (std::size_t i = 0; i < chunk.object.size(); ++i)
    chunk.object[i] = static_cast<Digest::value_type>(packed[i]);
  for (std::size_t i = 0; i < 4; ++i)
    chunk.index |= static_cast<std::uint32_t>(packed[chunk.object.size() + i]) << (8 * i);
  return std::pair(chunk, packed.subspan(name));
}

}  // namespace fedge::swarm
