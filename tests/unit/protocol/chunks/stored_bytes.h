// Objects for tests of chunk stores: bytes, their manifest, and what builds them.
#pragma once

#include <cstddef>
#include <cstring>
#include <span>
#include <vector>

#include "protocol/chunks/chunk_store.h"

namespace fedge::protocol {

inline constexpr std::uint32_t kStoredChunk = 4096;
inline constexpr std::uint64_t kStoredPage = 4096;  // a file's first page, before the payload

inline std::vector<std::byte> some_bytes(std::size_t size, unsigned seed) {
  std::vector<std::byte> bytes(size);
  for (std::size_t i = 0; i < size; ++i)
    bytes[i] = static_cast<std::byte>((i * 31 + seed * 7 + i / 256) & 0xff);
  return bytes;
}

inline Manifest manifest_of(std::span<const std::byte> bytes) {
  return make_manifest({}, Coverage::all(bytes.size() / 4), bytes, kStoredChunk);
}

inline auto filler(const std::vector<std::byte>& bytes) {
  return [&bytes](std::size_t chunk, std::span<std::byte> out) -> Result<void> {
    std::memcpy(out.data(), bytes.data() + chunk * kStoredChunk, out.size());
    return {};
  };
}

}  // namespace fedge::protocol
