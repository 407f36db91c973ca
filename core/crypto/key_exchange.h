// X25519 (RFC 7748; libsodium): two parties who know each other's public key share a secret that nobody else
// has. Says nothing about who the other is: public keys have to be signed. Any thread. Cost: some 30
// microseconds an agreement.
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
// The raw shared secret, from which keys are to be derived (hkdf.h). kInvalid for a public key of small
// order, which would make it the same for everybody.
Result<Secret> derive_shared_secret(const Secret& mine, const ExchangeKey& theirs);

}  // namespace fedge
