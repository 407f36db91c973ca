#include "core/crypto/hkdf.h"

#include <sodium.h>

#include <algorithm>

#include "core/check.h"

namespace fedge {
namespace {

constexpr std::size_t kHash = crypto_auth_hmacsha256_BYTES;

class Hmac {
 public:
  explicit Hmac(std::span<const std::uint8_t> key) {
    // An empty span's pointer may be null, which libsodium forbids.
    const std::uint8_t none = 0;
    crypto_auth_hmacsha256_init(&state_, key.empty() ? &none : key.data(), key.size());
  }
  ~Hmac() { sodium_memzero(&state_, sizeof state_); }
  Hmac(const Hmac&) = delete;
  Hmac& operator=(const Hmac&) = delete;
  Hmac& add(std::span<const std::uint8_t> bytes) {
    crypto_auth_hmacsha256_update(&state_, bytes.data(), bytes.size());
    return *this;
  }
  void finish(Secret& out) { crypto_auth_hmacsha256_final(&state_, out.bytes().data()); }

 private:
  crypto_auth_hmacsha256_state state_;
};

}  // namespace

void hkdf_sha256(std::span<const std::uint8_t> secret, std::span<const std::uint8_t> salt,
                 std::span<const std::uint8_t> info, std::span<std::uint8_t> out) {
  static_assert(kHash == Secret::kSize);
  FEDGE_CHECK(out.size() <= 255 * kHash, "HKDF gives at most 255 blocks");
  Secret extracted;
  Hmac(salt).add(secret).finish(extracted);
  Secret block;
  std::size_t done = 0;
  for (std::uint8_t counter = 1; done < out.size(); ++counter) {
    Hmac hmac(extracted.bytes());
    if (counter > 1) hmac.add(block.bytes());
    hmac.add(info).add(std::span(&counter, 1)).finish(block);
    const auto take = std::min(out.size() - done, kHash);
    std::copy_n(block.bytes().begin(), take, out.begin() + static_cast<std::ptrdiff_t>(done));
    done += take;
  }
}

Secret derive_key(const Secret& secret, std::span<const std::uint8_t> salt,
                  std::span<const std::uint8_t> info) {
  Secret key;
  hkdf_sha256(secret.bytes(), salt, info, key.bytes());
  return key;
}

}  // namespace fedge
