#include "server/access/oidc/verifying_key.h"

#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/ecdsa.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/param_build.h>
#include <openssl/rsa.h>

#include <algorithm>
#include <array>
#include <span>
#include <utility>

namespace fedge::server {
namespace {

constexpr std::array kAlgorithmNames = {"RS256", "PS256", "ES256", "EdDSA"};
constexpr int kFewestRsaBits = 2048;
constexpr int kMostRsaBits = 8192;  // bounds the cost of a check
constexpr std::size_t kMostExponentBytes = 4;
constexpr std::size_t kCoordinate = 32;

template <class T, void (*free)(T*)>
struct ReleaseWith {
  void operator()(T* pointer) const { free(pointer); }
};
using BigNumber = std::unique_ptr<BIGNUM, ReleaseWith<BIGNUM, BN_free>>;
using ParameterBuilder = std::unique_ptr<OSSL_PARAM_BLD, ReleaseWith<OSSL_PARAM_BLD, OSSL_PARAM_BLD_free>>;
using KeyParameters = std::unique_ptr<OSSL_PARAM, ReleaseWith<OSSL_PARAM, OSSL_PARAM_free>>;
using KeyContext = std::unique_ptr<EVP_PKEY_CTX, ReleaseWith<EVP_PKEY_CTX, EVP_PKEY_CTX_free>>;
using DigestContext = std::unique_ptr<EVP_MD_CTX, ReleaseWith<EVP_MD_CTX, EVP_MD_CTX_free>>;
using EcSignature = std::unique_ptr<ECDSA_SIG, ReleaseWith<ECDSA_SIG, ECDSA_SIG_free>>;

const unsigned char* raw(std::string_view bytes) {
  return reinterpret_cast<const unsigned char*>(bytes.data());
}

BigNumber number_of(std::string_view bytes) {
  return BigNumber(BN_bin2bn(raw(bytes), static_cast<int>(bytes.size()), nullptr));
}

// Null if OpenSSL does not accept the key.
std::shared_ptr<EVP_PKEY> key_from(const char* type, OSSL_PARAM_BLD* builder) {
  const KeyParameters parameters(OSSL_PARAM_BLD_to_param(builder));
  const KeyContext context(EVP_PKEY_CTX_new_from_name(nullptr, type, nullptr));
  EVP_PKEY* key = nullptr;
  const bool built = parameters && context && EVP_PKEY_fromdata_init(context.get()) == 1 &&
                     EVP_PKEY_fromdata(context.get(), &key, EVP_PKEY_PUBLIC_KEY, parameters.get()) == 1;
  std::shared_ptr<EVP_PKEY> owned(key, EVP_PKEY_free);
  ERR_clear_error();
  return built ? owned : nullptr;
}

// Turns r || s into the form that OpenSSL reads; empty if it is not 64 bytes.
std::string der_of(std::string_view signature) {
  if (signature.size() != 2 * kCoordinate) return {};
  BigNumber r = number_of(signature.substr(0, kCoordinate));
  BigNumber s = number_of(signature.substr(kCoordinate));
  const EcSignature both(ECDSA_SIG_new());
  if (!r || !s || !both || ECDSA_SIG_set0(both.get(), r.get(), s.get()) != 1) return {};
  (void)r.release();
  (void)s.release();
  unsigned char* bytes = nullptr;
  const int size = i2d_ECDSA_SIG(both.get(), &bytes);
  std::string der;
  if (size > 0) der.assign(reinterpret_cast<char*>(bytes), static_cast<std::size_t>(size));
  OPENSSL_free(bytes);
  return der;
}

bool sets_padding(EVP_PKEY_CTX* context, SigningAlgorithm algorithm) {
  if (algorithm == SigningAlgorithm::kEs256) return true;
  if (algorithm == SigningAlgorithm::kRs256)
    return EVP_PKEY_CTX_set_rsa_padding(context, RSA_PKCS1_PADDING) == 1;
  return EVP_PKEY_CTX_set_rsa_padding(context, RSA_PKCS1_PSS_PADDING) == 1 &&
         EVP_PKEY_CTX_set_rsa_pss_saltlen(context, RSA_PSS_SALTLEN_DIGEST) == 1 &&
         EVP_PKEY_CTX_set_rsa_mgf1_md(context, EVP_sha256()) == 1;
}

bool verifies_with_openssl(EVP_PKEY* key, SigningAlgorithm algorithm, std::string_view message,
                           std::string_view signature) {
  const bool elliptic = algorithm == SigningAlgorithm::kEs256;
  if (!elliptic && signature.size() != static_cast<std::size_t>(EVP_PKEY_get_size(key))) return false;
  const std::string der = elliptic ? der_of(signature) : std::string(signature);
  if (der.empty()) return false;
  const DigestContext digest(EVP_MD_CTX_new());
  EVP_PKEY_CTX* context = nullptr;  // belongs to `digest`
  const bool right = digest &&
                     EVP_DigestVerifyInit(digest.get(), &context, EVP_sha256(), nullptr, key) == 1 &&
                     sets_padding(context, algorithm) &&
                     EVP_DigestVerify(digest.get(), raw(der), der.size(), raw(message), message.size()) == 1;
  ERR_clear_error();
  return right;
}

}  // namespace

const char* name_of(SigningAlgorithm algorithm) {
  return kAlgorithmNames[static_cast<std::size_t>(algorithm)];
}

std::optional<SigningAlgorithm> parse_signing_algorithm(std::string_view name) {
  const auto* found = std::ranges::find(kAlgorithmNames, name);
  if (found == kAlgorithmNames.end()) return std::nullopt;
  return static_cast<SigningAlgorithm>(found - kAlgorithmNames.begin());
}

Result<VerifyingKey> VerifyingKey::rsa(const std::string& modulus, const std::string& exponent) {
  const BigNumber n = number_of(modulus);
  const int bits = n ? BN_num_bits(n.get()) : 0;
  if (bits < kFewestRsaBits || bits > kMostRsaBits)
    return invalid("the modulus has " + std::to_string(bits) + " bits; use an RSA key of " +
                   std::to_string(kFewestRsaBits) + " to " + std::to_string(kMostRsaBits) + " bits");
  if (BN_is_odd(n.get()) == 0) return invalid("the modulus (n) is even, so it is no RSA modulus");
  const bool short_enough = !exponent.empty() && exponent.size() <= kMostExponentBytes;
  const BigNumber e = short_enough ? number_of(exponent) : nullptr;
  if (!e || BN_is_odd(e.get()) == 0 || BN_is_one(e.get()) == 1)
    return invalid("the exponent (e) must be an odd number from 3 to 2^32");
  const ParameterBuilder builder(OSSL_PARAM_BLD_new());
  if (!builder || OSSL_PARAM_BLD_push_BN(builder.get(), OSSL_PKEY_PARAM_RSA_N, n.get()) != 1 ||
      OSSL_PARAM_BLD_push_BN(builder.get(), OSSL_PKEY_PARAM_RSA_E, e.get()) != 1)
    return Error{ErrorCode::kResource, "OpenSSL cannot build an RSA key"};
  auto key = key_from("RSA", builder.get());
  if (!key) return invalid("OpenSSL does not accept the RSA key");
  return VerifyingKey("RSA", std::move(key));
}

Result<VerifyingKey> VerifyingKey::p256(const std::string& x, const std::string& y) {
  if (x.size() != kCoordinate || y.size() != kCoordinate)
    return invalid("the coordinates (x, y) of a P-256 key must have 32 bytes each");
  const std::string point = '\x04' + x + y;
  const ParameterBuilder builder(OSSL_PARAM_BLD_new());
  if (!builder ||
      OSSL_PARAM_BLD_push_utf8_string(builder.get(), OSSL_PKEY_PARAM_GROUP_NAME, "prime256v1", 0) != 1 ||
      OSSL_PARAM_BLD_push_octet_string(builder.get(), OSSL_PKEY_PARAM_PUB_KEY, point.data(), point.size()) !=
          1)
    return Error{ErrorCode::kResource, "OpenSSL cannot build a P-256 key"};
  auto key = key_from("EC", builder.get());
  if (!key) return invalid("the coordinates (x, y) are not those of a point on the curve P-256");
  return VerifyingKey("P-256", std::move(key));
}

Result<VerifyingKey> VerifyingKey::ed25519(const std::string& bytes) {
  PublicKey key;
  if (bytes.size() != key.bytes.size()) return invalid("an Ed25519 key (x) must have 32 bytes");
  std::ranges::copy(bytes, reinterpret_cast<char*>(key.bytes.data()));
  return VerifyingKey(key);
}

const char* VerifyingKey::type() const { return type_; }

bool VerifyingKey::fits(SigningAlgorithm algorithm) const {
  const std::string_view type = type_;
  switch (algorithm) {
    case SigningAlgorithm::kRs256:
    case SigningAlgorithm::kPs256:
      return type == "RSA";
    case SigningAlgorithm::kEs256:
      return type == "P-256";
    case SigningAlgorithm::kEdDsa:
      break;
  }
  return type == "Ed25519";
}

bool VerifyingKey::verifies(SigningAlgorithm algorithm, std::string_view message,
                            std::string_view signature) const {
  if (!fits(algorithm)) return false;
  if (const auto* key = std::get_if<Openssl>(&key_))
    return verifies_with_openssl(key->get(), algorithm, message, signature);
  fedge::Signature bytes{};
  if (signature.size() != bytes.size()) return false;
  std::ranges::copy(signature, reinterpret_cast<char*>(bytes.data()));
  return verify(std::get<PublicKey>(key_), std::as_bytes(std::span(message)), bytes);
}

}  // namespace fedge::server
