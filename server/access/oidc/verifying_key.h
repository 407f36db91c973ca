// VerifyingKey: a public key that checks signatures of tokens (RFC 7518, section 3; RFC 8037). RSA and P-256
// by OpenSSL, Ed25519 by libsodium. Immutable; any thread. A check costs 20 to 100 microseconds.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "core/crypto/ed25519.h"
#include "core/result.h"

struct evp_pkey_st;  // EVP_PKEY of OpenSSL

namespace fedge::server {

// The algorithms that are accepted. "none" and those with a shared secret (HS256) are not among them.
enum class SigningAlgorithm : std::uint8_t { kRs256, kPs256, kEs256, kEdDsa };
inline constexpr std::array kEverySigningAlgorithm = {SigningAlgorithm::kRs256, SigningAlgorithm::kPs256,
                                                      SigningAlgorithm::kEs256, SigningAlgorithm::kEdDsa};
// For messages.
inline constexpr const char* kSigningAlgorithms = "RS256, PS256, ES256 or EdDSA";
const char* name_of(SigningAlgorithm algorithm);
// Compares exactly, with upper and lower case.
std::optional<SigningAlgorithm> parse_signing_algorithm(std::string_view name);

class VerifyingKey {
 public:
  // Big-endian numbers. kInvalid: the modulus has fewer than 2048 or more than 8192 bits, or is even; or the
  // exponent is not odd, or not from 3 to 2^32.
  static Result<VerifyingKey> rsa(const std::string& modulus, const std::string& exponent);
  // Coordinates of 32 bytes each. kInvalid: they are not those of a point on the curve.
  static Result<VerifyingKey> p256(const std::string& x, const std::string& y);
  // 32 bytes. A key of small order is accepted here, but no signature of it is.
  static Result<VerifyingKey> ed25519(const std::string& bytes);

  const char* type() const;  // "RSA", "P-256" or "Ed25519"
  bool fits(SigningAlgorithm algorithm) const;
  // Whether this is the key's signature of the message; false if the key does not fit the algorithm.
  // Signatures of ES256 have the form r || s of 64 bytes.
  bool verifies(SigningAlgorithm algorithm, std::string_view message, std::string_view signature) const;

 private:
  using Openssl = std::shared_ptr<evp_pkey_st>;
  VerifyingKey(const char* type, Openssl key) : type_(type), key_(std::move(key)) {}
  explicit VerifyingKey(const PublicKey& key) : type_("Ed25519"), key_(key) {}

  const char* type_;
  std::variant<Openssl, PublicKey> key_;
};

}  // namespace fedge::server
