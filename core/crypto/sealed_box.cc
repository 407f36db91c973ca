#include "core/crypto/sealed_box.h"

#include <sodium.h>

#include <algorithm>
#include <array>

#include "core/crypto/random.h"

namespace fedge {
namespace {

unsigned char* octets(std::span<std::byte> bytes) { return reinterpret_cast<unsigned char*>(bytes.data()); }
const unsigned char* octets(std::span<const std::byte> bytes) {
  return reinterpret_cast<const unsigned char*>(bytes.data());
}

}  // namespace

Result<std::vector<std::byte>> seal(const PublicKey& to, std::span<const std::byte> message) {
  std::array<unsigned char, crypto_box_PUBLICKEYBYTES> key{};
  if (crypto_sign_ed25519_pk_to_curve25519(key.data(), to.bytes.data()) != 0)
    return invalid("cannot seal a message: the recipient's public key is not a valid Ed25519 key");
  std::vector<std::byte> sealed(message.size() + crypto_box_SEALBYTES);
  if (crypto_box_seal(octets(std::span(sealed)), octets(message), message.size(), key.data()) != 0)
    return invalid("cannot seal a message: the recipient's public key is weak (a point of small order)");
  return sealed;
}

Result<std::vector<std::byte>> unseal(const SecretKey& key, std::span<const std::byte> sealed) {
  const Error corrupt{ErrorCode::kCorrupt,
                      "cannot open the sealed message: it was sealed for another key, or it was modified"};
  if (sealed.size() < crypto_box_SEALBYTES) return corrupt;
  std::array<unsigned char, crypto_sign_ed25519_SECRETKEYBYTES> expanded{};  // the seed, then the public key
  const auto rest = std::ranges::copy(key.seed(), expanded.begin()).out;
  std::ranges::copy(key.public_key().bytes, rest);
  std::array<unsigned char, crypto_box_SECRETKEYBYTES> secret{};
  crypto_sign_ed25519_sk_to_curve25519(secret.data(), expanded.data());
  std::array<unsigned char, crypto_box_PUBLICKEYBYTES> open{};
  crypto_scalarmult_base(open.data(), secret.data());
  std::vector<std::byte> message(sealed.size() - crypto_box_SEALBYTES);
  const int failed = crypto_box_seal_open(octets(std::span(message)), octets(sealed), sealed.size(),
                                          open.data(), secret.data());
  wipe(expanded);
  wipe(secret);
  if (failed != 0) return corrupt;
  return message;
}

}  // namespace fedge
