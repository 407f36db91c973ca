#include "core/crypto/secret_box.h"

#include <sodium.h>

#include <array>

#include "core/check.h"
#include "core/crypto/sodium_ready.h"

namespace fedge {
namespace {

static_assert(kSecretBoxOverhead == crypto_aead_xchacha20poly1305_ietf_ABYTES);
using Nonce = std::array<std::uint8_t, crypto_aead_xchacha20poly1305_ietf_NPUBBYTES>;

Nonce nonce_of(std::uint64_t number) {
  Nonce nonce{};
  for (std::size_t i = 0; i < 8; ++i) nonce.at(i) = static_cast<std::uint8_t>(number >> (8 * i));
  return nonce;
}

}  // namespace

std::vector<std::uint8_t> seal_box(const Secret& key, std::uint64_t number,
                                   std::span<const std::uint8_t> about,
                                   std::span<const std::uint8_t> message) {
  need_sodium();
  std::vector<std::uint8_t> sealed(message.size() + kSecretBoxOverhead);
  const Nonce nonce = nonce_of(number);
  const int done = crypto_aead_xchacha20poly1305_ietf_encrypt(sealed.data(), nullptr, message.data(),
                                                              message.size(), about.data(), about.size(),
                                                              nullptr, nonce.data(), key.bytes().data());
  FEDGE_CHECK(done == 0, "libsodium refused to seal a box");
  return sealed;
}

Result<std::vector<std::uint8_t>> open_box(const Secret& key, std::uint64_t number,
                                           std::span<const std::uint8_t> about,
                                           std::span<const std::uint8_t> sealed) {
  const Error damaged{ErrorCode::kCorrupt,
                      "cannot open the sealed message: it is damaged, or it was sealed for another purpose"};
  if (sealed.size() < kSecretBoxOverhead) return damaged;
  need_sodium();
  std::vector<std::uint8_t> message(sealed.size() - kSecretBoxOverhead);
  const Nonce nonce = nonce_of(number);
  if (crypto_aead_xchacha20poly1305_ietf_decrypt(message.data(), nullptr, nullptr, sealed.data(),
                                                 sealed.size(), about.data(), about.size(), nonce.data(),
                                                 key.bytes().data()) != 0)
    return damaged;
  return message;
}

}  // namespace fedge
