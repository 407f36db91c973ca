#include "core/crypto/key_exchange.h"

#include <sodium.h>

#include "core/check.h"
#include "core/crypto/sodium_ready.h"

namespace fedge {

ExchangeKey exchange_key_of(const Secret& secret) {
  need_sodium();
  ExchangeKey key;
  const int done = crypto_scalarmult_base(key.bytes.data(), secret.bytes().data());
  FEDGE_CHECK(done == 0, "libsodium refused to compute a public key");
  return key;
}

Result<Secret> derive_shared_secret(const Secret& mine, const ExchangeKey& theirs) {
  need_sodium();
  Secret shared;
  // Refuses an all-zero result (RFC 7748, section 6.1).
  if (crypto_scalarmult(shared.bytes().data(), mine.bytes().data(), theirs.bytes.data()) != 0)
    return invalid("the peer's public key for the key exchange is weak (a point of small order)");
  return shared;
}

}  // namespace fedge
