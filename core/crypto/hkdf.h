// HKDF-SHA256 (RFC 5869; HMAC of libsodium): keys for one purpose each from a shared secret. Any thread.
#pragma once

#include <cstdint>
#include <span>

#include "core/crypto/secret.h"

namespace fedge {

// Fills `out`, at most 8160 bytes. What `info` names is what the key is for.
void hkdf_sha256(std::span<const std::uint8_t> secret, std::span<const std::uint8_t> salt,
                 std::span<const std::uint8_t> info, std::span<std::uint8_t> out);
Secret derive_key(const Secret& secret, std::span<const std::uint8_t> salt,
                  std::span<const std::uint8_t> info);

}  // namespace fedge
