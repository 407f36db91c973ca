// X25519 (RFC 7748; libsodium): two parties that know each other's public key derive a common secret. It does
// not authenticate the peer: public keys must be signed. Any thread. Cost: about 30 microseconds a
// derivation.
#pragma once

#include <array>
#include <cstdint>

#include "core/crypto/secret.h"
#include "core/result.h"

namespace fedge {

struct ExchangeKey {
  std::array<std::uint8_t, 32> bytes{};
  auto operator<=>(const ExchangeKey&) const = default;
};

ExchangeKey exchange_key_of(const Secret& secret);
// The raw shared secret; derive keys from it (hkdf.h). kInvalid for a public key of small order, which would
// give every party the same secret.
Result<Secret> derive_shared_secret(const Secret& mine, const ExchangeKey& theirs);

}  // namespace fedge
