// Node keys: Ed25519 (libsodium). A node's identity is its public key. Secret keys are wiped on destruction,
// cannot be printed or copied by accident, and are stored in files of mode 0600.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>

#include "core/result.h"

namespace fedge {

struct PublicKey {
  std::array<std::uint8_t, 32> bytes{};
  auto operator<=>(const PublicKey&) const = default;
};

std::string to_hex(const PublicKey& key);
Result<PublicKey> parse_public_key(const std::string& hex);

using Signature = std::array<std::uint8_t, 64>;

class SecretKey {
 public:
  static SecretKey generate();
  static SecretKey from_seed(std::span<const std::uint8_t, 32> seed);
  ~SecretKey();
  SecretKey(SecretKey&& other) noexcept;
  SecretKey& operator=(SecretKey&& other) noexcept;
  SecretKey(const SecretKey&) = delete;
  SecretKey& operator=(const SecretKey&) = delete;

  const PublicKey& public_key() const { return public_; }
  // The 32-byte seed, for the TLS library and the key file; the caller must not keep it.
  std::span<const std::uint8_t, 32> seed() const { return seed_; }

 private:
  SecretKey() = default;
  std::array<std::uint8_t, 32> seed_{};
  PublicKey public_;
};

// Signs as in RFC 8032, section 5.1.6.
Signature sign(const SecretKey& key, std::span<const std::byte> message);
// Accepts at most one signature of a key for a message: refuses non-canonical signatures and keys of small
// order.
bool verify(const PublicKey& key, std::span<const std::byte> message, const Signature& signature);

// Reads the key file; if there is none, creates one with a new key (mode 0600). Refuses a file of another
// user or with access for others, one in a directory that other users own or may write, a symbolic link, and
// a damaged file; the error says what to do.
Result<SecretKey> load_or_create_key(const std::filesystem::path& path);
// The same, but never creates a key: nothing if there is no file.
Result<std::optional<SecretKey>> load_key(const std::filesystem::path& path);
// Writes a key file; an error if the path exists.
Result<void> store_key(const SecretKey& key, const std::filesystem::path& path);

}  // namespace fedge
