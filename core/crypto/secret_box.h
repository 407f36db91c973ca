// Secret box: bytes that only who has the key can read or have written (XChaCha20-Poly1305, libsodium), bound
// to what they are about. Any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/crypto/secret.h"
#include "core/result.h"

namespace fedge {

inline constexpr std::size_t kSecretBoxOverhead = 16;  // bytes more than what is sealed

// `number` must never come twice with one key; it is not sent. `about` is authenticated and not sent either.
std::vector<std::uint8_t> seal_box(const Secret& key, std::uint64_t number,
                                   std::span<const std::uint8_t> about,
                                   std::span<const std::uint8_t> message);
// kCorrupt for what was not sealed with this key, number and context, or has been changed.
Result<std::vector<std::uint8_t>> open_box(const Secret& key, std::uint64_t number,
                                           std::span<const std::uint8_t> about,
                                           std::span<const std::uint8_t> sealed);

}  // namespace fedge
