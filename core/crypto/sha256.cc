#include "core/crypto/sha256.h"

#include <openssl/evp.h>

#include "core/check.h"

namespace fedge {

Digest sha256(std::span<const std::byte> bytes) {
  Digest digest;
  const int ok = EVP_Digest(bytes.data(), bytes.size(), digest.data(), nullptr, EVP_sha256(), nullptr);
  FEDGE_CHECK(ok == 1, "OpenSSL refused to compute SHA-256");
  return digest;
}

struct Sha256::State {
  std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context{EVP_MD_CTX_new(), &EVP_MD_CTX_free};
};

Sha256::Sha256() : state_(std::make_unique<State>()) {
  const int ok = EVP_DigestInit_ex(state_->context.get(), EVP_sha256(), nullptr);
  FEDGE_CHECK(ok == 1, "OpenSSL refused to begin SHA-256");
}

Sha256::~Sha256() = default;

void Sha256::add(std::span<const std::byte> bytes) {
  const int ok = EVP_DigestUpdate(state_->context.get(), bytes.data(), bytes.size());
  FEDGE_CHECK(ok == 1, "OpenSSL refused to go on with SHA-256");
}

Digest Sha256::so_far() const {
  Sha256 copy;
  const int ok = EVP_MD_CTX_copy_ex(copy.state_->context.get(), state_->context.get());
  FEDGE_CHECK(ok == 1, "OpenSSL refused to copy SHA-256");
  return copy.finish();
}

Digest Sha256::finish() {
  Digest digest;
  const int ok = EVP_DigestFinal_ex(state_->context.get(), digest.data(), nullptr);
  FEDGE_CHECK(ok == 1, "OpenSSL refused to finish SHA-256");
  return digest;
}

Digest sha256(std::string_view text) { return sha256(std::as_bytes(std::span(text))); }

std::string to_hex(std::span<const std::uint8_t> bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  text.reserve(bytes.size() * 2);
  for (const std::uint8_t byte : bytes) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

std::string short_hex(const Digest& digest) { return to_hex(std::span(digest).first(6)); }

bool is_hex_digest(std::string_view text) {
  return text.size() == 2 * Digest{}.size() &&
         text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

}  // namespace fedge
