// Sealed boxes: bytes that only the owner of a node key can read, from somebody who is not named (libsodium's
// crypto_box_seal, to the Ed25519 key as X25519; 48 bytes more than what is sealed). Who sealed it, and that
// nobody else did, is not proved. Any thread.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "core/crypto/ed25519.h"
#include "core/result.h"

namespace fedge {

// kInvalid for bytes that are no key's.
Result<std::vector<std::byte>> seal(const PublicKey& to, std::span<const std::byte> message);
// kCorrupt for what is not sealed to this key, or has been changed.
Result<std::vector<std::byte>> unseal(const SecretKey& key, std::span<const std::byte> sealed);

}  // namespace fedge
