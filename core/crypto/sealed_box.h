// Sealed boxes: anonymous messages that only the owner of a node key can read (libsodium's crypto_box_seal,
// with the Ed25519 key converted to X25519; adds 48 bytes). The sender is not authenticated. Any thread.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "core/crypto/ed25519.h"
#include "core/result.h"

namespace fedge {

// Returns kInvalid if `to` is no valid public key.
Result<std::vector<std::byte>> seal(const PublicKey& to, std::span<const std::byte> message);
// Returns kCorrupt for bytes that were modified or not sealed for this key.
Result<std::vector<std::byte>> unseal(const SecretKey& key, std::span<const std::byte> sealed);

}  // namespace fedge
