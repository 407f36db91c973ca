// Secret box: authenticated encryption (XChaCha20-Poly1305, libsodium): only holders of the key can read or
// write the bytes, which are bound to a context. Any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/crypto/secret.h"
#include "core/result.h"

namespace fedge {

inline constexpr std::size_t kSecretBoxOverhead = 16;  // extra bytes of a sealed message

// `number` must be unique for each key; it is not sent. `about` is authenticated and not sent either.
std::vector<std::uint8_t> seal_box(const Secret& key, std::uint64_t number,
                                   std::span<const std::uint8_t> about,
                                   std::span<const std::uint8_t> message);
// Returns kCorrupt for bytes that were modified or sealed with another key, number or context.
Result<std::vector<std::uint8_t>> open_box(const Secret& key, std::uint64_t number,
                                           std::span<const std::uint8_t> about,
                                           std::span<const std::uint8_t> sealed);

}  // namespace fedge
