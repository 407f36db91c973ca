// Keys of an identity provider and tokens that they sign, with OpenSSL, for tests.
#pragma once

#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/ecdsa.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rsa.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/check.h"

namespace fedge::test {

inline std::string base64url(std::string_view bytes) {
  std::string text(4 * ((bytes.size() + 2) / 3) + 1, '\0');
  const int size =
      EVP_EncodeBlock(reinterpret_cast<unsigned char*>(text.data()),
                      reinterpret_cast<const unsigned char*>(bytes.data()), static_cast<int>(bytes.size()));
  text.resize(static_cast<std::size_t>(size));
  for (char& c : text) c = c == '+' ? '-' : c == '/' ? '_' : c;
  return text.substr(0, text.find('='));
}

// A private key and its description as a JSON Web Key.
class SigningKey {
 public:
  static SigningKey rsa(unsigned bits = 2048) { return SigningKey(EVP_RSA_gen(bits)); }
  static SigningKey p256() { return SigningKey(EVP_EC_gen("P-256")); }
  static SigningKey ed25519() { return SigningKey(EVP_PKEY_Q_keygen(nullptr, nullptr, "ED25519")); }

  // The public members of the key: "kty":"RSA","n":"...","e":"AQAB".
  std::string members() const {
    if (type() == EVP_PKEY_RSA)
      return R"("kty":"RSA","n":")" + base64url(number(OSSL_PKEY_PARAM_RSA_N)) + R"(","e":")" +
             base64url(number(OSSL_PKEY_PARAM_RSA_E)) + '"';
    if (type() == EVP_PKEY_EC)
      return R"("kty":"EC","crv":"P-256","x":")" + base64url(number(OSSL_PKEY_PARAM_EC_PUB_X, 32)) +
             R"(","y":")" + base64url(number(OSSL_PKEY_PARAM_EC_PUB_Y, 32)) + '"';
    return R"("kty":"OKP","crv":"Ed25519","x":")" + base64url(public_bytes()) + '"';
  }
  // {"kid":"...", members, more}
  std::string jwk(const std::string& id, const std::string& more = "") const {
    return "{" + (id.empty() ? "" : "\"kid\":\"" + id + "\",") + members() +
           (more.empty() ? "" : "," + more) + "}";
  }

  // The signature as the algorithm of this name demands it; ES256 as r || s.
  std::string sign(std::string_view algorithm, std::string_view message) const {
    const std::string made = raw_signature(algorithm, message);
    return type() == EVP_PKEY_EC ? fixed(made) : made;
  }
  // As OpenSSL makes it: of an elliptic curve in DER.
  std::string raw_signature(std::string_view algorithm, std::string_view message) const {
    EVP_MD_CTX* digest = EVP_MD_CTX_new();
    EVP_PKEY_CTX* context = nullptr;
    const bool plain = type() == EVP_PKEY_ED25519;
    FEDGE_CHECK(
        EVP_DigestSignInit(digest, &context, plain ? nullptr : EVP_sha256(), nullptr, key_.get()) == 1,
        "the key signs");
    if (algorithm == "PS256") {
      EVP_PKEY_CTX_set_rsa_padding(context, RSA_PKCS1_PSS_PADDING);
      EVP_PKEY_CTX_set_rsa_pss_saltlen(context, RSA_PSS_SALTLEN_DIGEST);
    }
    const auto* bytes = reinterpret_cast<const unsigned char*>(message.data());
    std::size_t size = 0;
    EVP_DigestSign(digest, nullptr, &size, bytes, message.size());
    std::string made(size, '\0');
    FEDGE_CHECK(EVP_DigestSign(digest, reinterpret_cast<unsigned char*>(made.data()), &size, bytes,
                               message.size()) == 1,
                "the key signs");
    made.resize(size);
    EVP_MD_CTX_free(digest);
    return made;
  }

 private:
  explicit SigningKey(EVP_PKEY* key) : key_(key, EVP_PKEY_free) { FEDGE_CHECK(key != nullptr, "a key"); }
  int type() const { return EVP_PKEY_get_base_id(key_.get()); }

  std::string number(const char* name, int size = 0) const {
    BIGNUM* value = nullptr;
    FEDGE_CHECK(EVP_PKEY_get_bn_param(key_.get(), name, &value) == 1, "the key has this number");
    std::string bytes(static_cast<std::size_t>(size > 0 ? size : BN_num_bytes(value)), '\0');
    BN_bn2binpad(value, reinterpret_cast<unsigned char*>(bytes.data()), static_cast<int>(bytes.size()));
    BN_free(value);
    return bytes;
  }
  std::string public_bytes() const {
    std::string bytes(32, '\0');
    std::size_t size = bytes.size();
    EVP_PKEY_get_raw_public_key(key_.get(), reinterpret_cast<unsigned char*>(bytes.data()), &size);
    return bytes;
  }
  static std::string fixed(const std::string& der) {
    const auto* bytes = reinterpret_cast<const unsigned char*>(der.data());
    ECDSA_SIG* both = d2i_ECDSA_SIG(nullptr, &bytes, static_cast<long>(der.size()));
    std::string made(64, '\0');
    auto* out = reinterpret_cast<unsigned char*>(made.data());
    BN_bn2binpad(ECDSA_SIG_get0_r(both), out, 32);
    BN_bn2binpad(ECDSA_SIG_get0_s(both), out + 32, 32);
    ECDSA_SIG_free(both);
    return made;
  }

  std::shared_ptr<EVP_PKEY> key_;
};

// {"keys":[...]}
inline std::string key_set_of(const std::vector<std::string>& keys) {
  std::string list;
  for (const std::string& key : keys) list += (list.empty() ? "" : ",") + key;
  return "{\"keys\":[" + list + "]}";
}

// The token with this header and payload, both JSON, and a signature of the key.
inline std::string token_of(const SigningKey& key, std::string_view algorithm, const std::string& header,
                            const std::string& payload) {
  const std::string covered = base64url(header) + "." + base64url(payload);
  return covered + "." + base64url(key.sign(algorithm, covered));
}

}  // namespace fedge::test
