// JSON Web Key Sets: what is a key, what is left out, and what makes the whole file wrong.
#include "server/access/oidc/key_set.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "tests/support/http/token_signer.h"

using namespace fedge;
using namespace fedge::server;
using test::base64url;
using test::SigningKey;

namespace {

const SigningKey& set_key() {
  static const SigningKey key = SigningKey::p256();
  return key;
}

// "N keys", or why the set is wrong.
std::string outcome_of_set(const std::string& text) {
  const auto set = KeySet::parse(text);
  if (!set) CHECK(set.error().code == ErrorCode::kInvalid);
  return set ? std::to_string(set->size()) + " keys" : set.error().message;
}
std::string outcome_of_keys(const std::vector<std::string>& keys) {
  return outcome_of_set(test::key_set_of(keys));
}

std::string rsa_jwk(const std::string& modulus,
                    const std::string& exponent = std::string("\x01\x00\x01", 3)) {
  return R"({"kty":"RSA","n":")" + base64url(modulus) + R"(","e":")" + base64url(exponent) + R"("})";
}

}  // namespace

TEST_CASE("key set: keys of other types, curves and purposes are left out, as long as one is left") {
  CHECK(outcome_of_keys({set_key().jwk("a")}) == "1 keys");
  CHECK(outcome_of_keys({set_key().jwk("a"), SigningKey::rsa().jwk("b"), SigningKey::ed25519().jwk("c")}) ==
        "3 keys");
  const std::string p384 = R"({"kty":"EC","crv":"P-384","x":"AA","y":"AA"})";
  const std::string x25519 = R"({"kty":"OKP","crv":"X25519","x":"AA"})";
  const std::string future = R"({"kty":"AKP","alg":"ML-DSA-44","pub":"AA","more":{"a":[1]}})";
  CHECK(outcome_of_keys({p384, x25519, future, set_key().jwk("a", R"("x5c":["MII"],"exp":7)")}) == "1 keys");
  CHECK(outcome_of_set(R"({"keys":[],"other":1})") == "0 keys");
  const std::string none = "none of its keys can check signatures of RS256, PS256, ES256 or EdDSA";
  CHECK(outcome_of_keys({p384, x25519, future}) == none);
  CHECK(outcome_of_keys({set_key().jwk("a", R"("use":"enc")")}) == none);
  CHECK(outcome_of_keys({set_key().jwk("a", R"("alg":"ECDH-ES")")}) == none);
}

TEST_CASE("key set: a weak, broken or secret key makes the set wrong, and is named") {
  const std::string good = set_key().jwk("a");
  const auto second = [&](const std::string& key) { return outcome_of_keys({good, key}); };
  const std::string odd_bytes = '\x80' + std::string(254, '\x01') + '\x01';
  CHECK(second(SigningKey::rsa(1024).jwk("b")) ==
        "key 2: the modulus has 1024 bits; use an RSA key of 2048 to 8192 bits");
  CHECK(second(rsa_jwk('\x7f' + odd_bytes.substr(1))) ==
        "key 2: the modulus has 2047 bits; use an RSA key of 2048 to 8192 bits");
  CHECK(second(rsa_jwk(odd_bytes)) == "2 keys");
  CHECK(second(rsa_jwk('\x01' + std::string(1024, '\x01'))) ==
        "key 2: the modulus has 8193 bits; use an RSA key of 2048 to 8192 bits");
  CHECK(second(rsa_jwk(odd_bytes.substr(0, 255) + '\x02')) ==
        "key 2: the modulus (n) is even, so it is no RSA modulus");
  for (const std::string& exponent : {std::string("\x01"), std::string("\x02"), std::string("\x01\x00", 2),
                                      std::string("\x01\x00\x00\x00\x01", 5), std::string("\x00", 1)})
    CHECK(second(rsa_jwk(odd_bytes, exponent)) ==
          "key 2: the exponent (e) must be an odd number from 3 to 2^32");
  const std::string off_curve = R"({"kty":"EC","crv":"P-256","x":")" + base64url(std::string(32, '\x01')) +
                                R"(","y":")" + base64url(std::string(32, '\x01')) + R"("})";
  CHECK(second(off_curve) == "key 2: the coordinates (x, y) are not those of a point on the curve P-256");
  CHECK(second(R"({"kty":"EC","crv":"P-256","x":"AQ","y":"AQ"})") ==
        "key 2: the coordinates (x, y) of a P-256 key must have 32 bytes each");
  CHECK(second(R"({"kty":"OKP","crv":"Ed25519","x":"AQ"})") ==
        "key 2: an Ed25519 key (x) must have 32 bytes");
  CHECK(second(R"({"kty":"OKP","crv":"Ed25519"})") == "key 2: the member x is missing");
  CHECK(second(R"({"kty":"RSA","n":"AQ==","e":"AQAB"})") ==
        "key 2: the member n is not base64url without padding");
  CHECK(second(R"({"kty":"RSA","n":7,"e":"AQAB"})") == "key 2: the member n is not a string");
  CHECK(second(R"({"kid":"x"})") == "key 2: the member kty is missing");
  CHECK(second("7") == "key 2: it is not an object");
  CHECK(second(set_key().jwk("b", R"("d":"AQ")")) ==
        "key 2: it has the secret member d; the file must have only public keys");
  CHECK(second(R"({"kty":"oct","kid":"s","k":"c2VjcmV0"})") ==
        "key 2: it has the secret member k; the file must have only public keys");
  CHECK(second(set_key().jwk("b", R"("key_ops":"verify")")) ==
        "key 2: the member key_ops is not a list of strings");
  CHECK(second(set_key().jwk("b", R"("use":["sig"])")) == "key 2: the member use is not a string");
  CHECK(second(set_key().jwk(std::string(257, 'k'))) == "key 2: its kid has more than 256 bytes");
  CHECK(second(set_key().jwk("a")) == "two keys have the kid 'a'");
}

TEST_CASE("key set: what is no key set is refused, and its size is bounded") {
  const std::string no_json = "it is not JSON, is nested too deep, or has a member twice";
  const std::string no_set = "it is not a JSON Web Key Set: an object with the list \"keys\"";
  for (const char* text : {"", "{", "{\"keys\":[]}}", "\xff", "{\"keys\":[],\"keys\":[]}"})
    CHECK(outcome_of_set(text) == no_json);
  CHECK(outcome_of_set(std::string(100'000, '[')) == no_json);
  CHECK(outcome_of_keys({set_key().jwk("a", R"("kid":"b")")}) == no_json);
  for (const char* text : {"[]", "7", "{}", "{\"keys\":{}}", "{\"Keys\":[]}"})
    CHECK(outcome_of_set(text) == no_set);
  // A single key is no set.
  CHECK(outcome_of_set(set_key().jwk("a")) == no_set);
  std::vector<std::string> many;
  for (std::size_t i = 0; i <= kMaxKeysInSet; ++i) many.push_back(set_key().jwk(std::to_string(i)));
  CHECK(outcome_of_keys(many) == "it has 101 keys; at most 100 are accepted");
  many.pop_back();
  CHECK(outcome_of_keys(many) == "100 keys");
}
