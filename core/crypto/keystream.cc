#include "core/crypto/keystream.h"

#include <openssl/evp.h>

#include <algorithm>
#include <array>

#include "core/check.h"

namespace fedge {
namespace {

constexpr std::size_t kPiece = 16384;
// Encrypting zeros yields the stream itself.
const std::array<std::uint8_t, kPiece> kZeros{};

}  // namespace

bool has_fast_aes() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("aes") != 0;
#elif defined(__ARM_FEATURE_AES)
  return true;
#else
  return false;
#endif
}

struct Keystream::State {
  std::unique_ptr<EVP_CIPHER_CTX, decltype(&EVP_CIPHER_CTX_free)> context{EVP_CIPHER_CTX_new(),
                                                                          &EVP_CIPHER_CTX_free};
  StreamCipher cipher = StreamCipher::kAes256Ctr;
};

Keystream::Keystream(StreamCipher cipher) : state_(std::make_unique<State>()) {
  state_->cipher = cipher;
  const EVP_CIPHER* kind = cipher == StreamCipher::kAes256Ctr ? EVP_aes_256_ctr() : EVP_chacha20();
  const int ok = EVP_EncryptInit_ex(state_->context.get(), kind, nullptr, nullptr, nullptr);
  FEDGE_CHECK(ok == 1, "OpenSSL refused to begin a keystream");
}

Keystream::~Keystream() = default;
Keystream::Keystream(Keystream&&) noexcept = default;
Keystream& Keystream::operator=(Keystream&&) noexcept = default;

void Keystream::start(const Secret& key, std::uint64_t offset) {
  FEDGE_CHECK(offset % 64 == 0 && offset < (std::uint64_t{1} << 37), "a keystream starts at whole blocks");
  std::array<std::uint8_t, 16> iv{};
  // AES counts blocks of 16 bytes in the last bytes, big-endian. ChaCha20 counts blocks of 64 in the first
  // four bytes, little-endian (RFC 8439).
  const bool aes = state_->cipher == StreamCipher::kAes256Ctr;
  const std::uint64_t block = aes ? offset / 16 : offset / 64;
  for (std::size_t i = 0; i < 8; ++i) {
    const auto byte = static_cast<std::uint8_t>(block >> (8 * i));
    iv.at(aes ? 15 - i : i) = byte;
  }
  const int ok = EVP_EncryptInit_ex(state_->context.get(), nullptr, nullptr, key.bytes().data(), iv.data());
  FEDGE_CHECK(ok == 1, "OpenSSL refused a key");
}

void Keystream::next(std::span<std::uint8_t> out) {
  while (!out.empty()) {
    const std::size_t size = std::min(out.size(), kPiece);
    int written = 0;
    const int ok =
        EVP_EncryptUpdate(state_->context.get(), out.data(), &written, kZeros.data(), static_cast<int>(size));
    FEDGE_CHECK(ok == 1 && static_cast<std::size_t>(written) == size, "OpenSSL refused to go on");
    out = out.subspan(size);
  }
}

}  // namespace fedge
