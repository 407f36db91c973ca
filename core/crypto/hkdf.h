// HKDF-SHA256 (RFC 5869; HMAC of libsodium): derives keys for separate purposes from a shared secret. Any
// thread.
#pragma once

#include <cstdint>
#include <span>

#include "core/crypto/secret.h"

namespace fedge {

// Fills `out`, at most 8160 bytes. `info` names the purpose of the key.
void hkdf_sha256(std::span<const std::uint8_t> secret, std::span<const std::uint8_t> salt,
                 std::span<const std::uint8_t> info, std::span<std::uint8_t> out);
Secret derive_key(const Secret& secret, std::span<const std::uint8_t> salt,
                  std::span<const std::uint8_t> info);

}  // namespace fedge
