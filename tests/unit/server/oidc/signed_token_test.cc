// Signatures of tokens: published vectors, each algorithm, and each attack on the header and the signature.
#include "server/access/oidc/signed_token.h"

#include <doctest/doctest.h>

#include <functional>
#include <string>
#include <vector>

#include "server/access/oidc/base64url.h"
#include "tests/support/http/token_signer.h"

using namespace fedge;
using namespace fedge::server;
using test::base64url;
using test::SigningKey;
using test::token_of;

namespace {

const SigningKey& rsa_key() {
  static const SigningKey key = SigningKey::rsa();
  return key;
}
const SigningKey& curve_key() {
  static const SigningKey key = SigningKey::p256();
  return key;
}
const SigningKey& edwards_key() {
  static const SigningKey key = SigningKey::ed25519();
  return key;
}

// The keys "r", "c" and "e".
KeySet three_keys() {
  const auto set =
      KeySet::parse(test::key_set_of({rsa_key().jwk("r"), curve_key().jwk("c"), edwards_key().jwk("e")}));
  REQUIRE_MESSAGE(set, set.error().message);
  return *set;
}

std::string outcome_of(const std::string& token, const KeySet& keys) {
  const auto payload = signed_payload(token, keys);
  if (!payload) CHECK(payload.error().code == ErrorCode::kRefused);
  return payload ? "signed: " + *payload : payload.error().message;
}

KeySet one_key(const std::string& jwk) {
  const auto set = KeySet::parse(test::key_set_of({jwk}));
  REQUIRE_MESSAGE(set, set.error().message);
  return *set;
}

std::string rs256(const std::string& header, const std::string& payload = "{}") {
  return token_of(rsa_key(), "RS256", header, payload);
}

}  // namespace

TEST_CASE("signed token: the examples of RFC 7515 and RFC 8037 are right, and with any bit changed wrong") {
  struct Example {
    const char* jwk;
    std::string token;
    std::string payload;
  };
  const std::string claims =
      "{\"iss\":\"joe\",\r\n \"exp\":1300819380,\r\n \"http://example.com/is_root\":true}";
  const std::string encoded =
      "eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ";
  const std::vector<Example> examples = {
      // RFC 7515, appendix A.2
      {R"({"kty":"RSA","e":"AQAB","n":"ofgWCuLjybRlzo0tZWJjNiuSfb4p4fAkd_wWJcyQoTbji9k0l8W26mPddxHmfHQp-Va)"
       R"(w-4qPCJrcS2mJPMEzP1Pt0Bm4d4QlL-yRT-SFd2lZS-pCgNMsD1W_YpRPEwOWvG6b32690r2jZ47soMZo9wGzjb_7OMg0LOL-)"
       R"(bSf63kpaSHSXndS5z5rexMdbBYUsLA9e-KXBdQOS-UTo7WTBEMa2R2CapHg665xsmtdVMTBQY4uDZlxvb3qCo5ZwKh9kG4LT6_I)"
       R"(5IhlJH7aGhyxXFvUK-DWNmoudF8NAco9_h9iaGNj8q2ethFkMLs91kzk2PAcDTW9gb54h4FRWyuXpoQ"})",
       "eyJhbGciOiJSUzI1NiJ9." + encoded +
           ".cC4hiUPoj9Eetdgtv3hF80EGrhuB__dzERat0XF9g2VtQgr9PJbu3XOiZj5RZmh7AAuHIm4Bh-0Qc_lF5YKt_"
           "O8W2Fp5jujGbd"
           "s9uJdbF9CUAr7t1dnZcAcQjbKBYNX4BAynRFdiuB--f_"
           "nZLgrnbyTyWzO75vRK5h6xBArLIARNPvkSjtQBMHlb1L07Qe7K0GarZR"
           "mB_eSN9383LcOLn6_dO--xi12jzDwusC-"
           "eOkHWEsqtFZESc6BfI7noOPqvhJ1phCnvWh6IeYI2w9QOYEUipUTI8np6LbgGY9Fs98"
           "rqVt5AXLIhWkWywlVmtVrBp0igcN_IoypGlUPQGe77Rw",
       claims},
      // RFC 7515, appendix A.3
      {R"({"kty":"EC","crv":"P-256","x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU",)"
       R"("y":"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"})",
       "eyJhbGciOiJFUzI1NiJ9." + encoded +
           ".DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q",
       claims},
      // RFC 8037, appendix A.4
      {R"({"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"})",
       "eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc."
       "hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg",
       "Example of Ed25519 signing"}};
  for (const Example& example : examples) {
    const KeySet keys = one_key(example.jwk);
    CHECK(outcome_of(example.token, keys) == "signed: " + example.payload);
    for (std::size_t place = 0; place < example.token.size(); ++place) {
      std::string changed = example.token;
      changed[place] = changed[place] == 'A' ? 'B' : 'A';
      CHECK_FALSE(signed_payload(changed, keys));
    }
  }
}

TEST_CASE("signed token: each algorithm accepts its own key's signature and no other key's") {
  const KeySet keys = three_keys();
  struct Way {
    const char* algorithm;
    const char* kid;
    const SigningKey& key;
    SigningKey other;
  };
  for (const Way& way :
       {Way{"RS256", "r", rsa_key(), SigningKey::rsa()}, Way{"PS256", "r", rsa_key(), SigningKey::rsa()},
        Way{"ES256", "c", curve_key(), SigningKey::p256()},
        Way{"EdDSA", "e", edwards_key(), SigningKey::ed25519()}}) {
    const std::string header =
        R"({"alg":")" + std::string(way.algorithm) + R"(","kid":")" + way.kid + R"(","typ":"JWT"})";
    CHECK(outcome_of(token_of(way.key, way.algorithm, header, "{}"), keys) == "signed: {}");
    CHECK(outcome_of(token_of(way.other, way.algorithm, header, "{}"), keys) == "its signature is wrong");
    const std::string right = token_of(way.key, way.algorithm, header, R"({"sub":"a"})");
    const std::size_t first = right.find('.');
    const std::size_t last = right.rfind('.');
    const std::string changed = right.substr(0, first + 1) + base64url(R"({"sub":"b"})") + right.substr(last);
    CHECK(outcome_of(changed, keys) == "its signature is wrong");
    CHECK(outcome_of(right.substr(0, last + 1), keys) == "its signature is wrong");
    CHECK(outcome_of(right.substr(0, last), keys) == "it does not consist of three parts");
    CHECK(outcome_of(right.substr(0, last + 1) + base64url(std::string(64, '\0')), keys) ==
          "its signature is wrong");
    CHECK(outcome_of(right.substr(0, last + 1) + base64url(std::string(256, '\xff')), keys) ==
          "its signature is wrong");
  }
}

TEST_CASE("signed token: the algorithm is one of four, and the key decides whether it fits") {
  const KeySet keys = three_keys();
  const auto outcome = [&](const std::string& header) { return outcome_of(rs256(header), keys); };
  for (const std::string name :
       {"none", "None", "NONE", "", "HS256", "RS512", "RS1", "rs256", "ES384", "RS256 "})
    CHECK(outcome(R"({"alg":")" + name + R"(","kid":"r"})") ==
          "its algorithm (alg) is '" + name + "', not RS256, PS256, ES256 or EdDSA");
  CHECK(outcome(R"({"kid":"r"})") == "its algorithm (alg) is '', not RS256, PS256, ES256 or EdDSA");
  CHECK(outcome(R"({"alg":["RS256"],"kid":"r"})") == "alg in its header is not a string");
  CHECK(outcome(R"({"alg":"RS256","kid":"c"})") ==
        "the key 'c' is of the type P-256, which does not fit the algorithm RS256");
  CHECK(outcome(R"({"alg":"ES256","kid":"r"})") ==
        "the key 'r' is of the type RSA, which does not fit the algorithm ES256");
  CHECK(outcome(R"({"alg":"EdDSA","kid":"c"})") ==
        "the key 'c' is of the type P-256, which does not fit the algorithm EdDSA");
  // The two paddings of RSA are not taken for each other.
  CHECK(outcome(R"({"alg":"PS256","kid":"r"})") == "its signature is wrong");
  CHECK(outcome_of(token_of(rsa_key(), "PS256", R"({"alg":"RS256","kid":"r"})", "{}"), keys) ==
        "its signature is wrong");
}

TEST_CASE("signed token: attacks on the algorithm and the form of the signature are refused") {
  const KeySet keys = three_keys();
  // The public key as the secret of an HMAC: what a library checks that lets the token choose the algorithm.
  const std::string covered = base64url(R"({"alg":"HS256","kid":"r"})") + "." + base64url("{}");
  for (const std::string& secret : {rsa_key().members(), rsa_key().jwk("r"), std::string("r")}) {
    std::string mac(32, '\0');
    unsigned size = 0;
    HMAC(EVP_sha256(), secret.data(), static_cast<int>(secret.size()),
         reinterpret_cast<const unsigned char*>(covered.data()), covered.size(),
         reinterpret_cast<unsigned char*>(mac.data()), &size);
    CHECK(outcome_of(covered + "." + base64url(mac), keys) ==
          "its algorithm (alg) is 'HS256', not RS256, PS256, ES256 or EdDSA");
  }
  // A signature of ES256 in DER, with leading zeros left out, and with r and s exchanged.
  const std::string header = R"({"alg":"ES256","kid":"c"})";
  const std::string signing = base64url(header) + "." + base64url("{}");
  CHECK(outcome_of(signing + "." + base64url(curve_key().raw_signature("ES256", signing)), keys) ==
        "its signature is wrong");
  const std::string right = curve_key().sign("ES256", signing);
  REQUIRE(outcome_of(signing + "." + base64url(right), keys) == "signed: {}");
  CHECK(outcome_of(signing + "." + base64url(right.substr(32) + right.substr(0, 32)), keys) ==
        "its signature is wrong");
  for (const std::string& wrong : {right.substr(0, 63), right + '\0', std::string(1, '\0') + right})
    CHECK(outcome_of(signing + "." + base64url(wrong), keys) == "its signature is wrong");
  // Zeros are the signature of everything where r and s are not checked (CVE-2022-21449).
  CHECK(outcome_of(signing + "." + base64url(std::string(64, '\0')), keys) == "its signature is wrong");
  // A key in the token's own header is the attacker's.
  const SigningKey mine = SigningKey::rsa();
  for (const std::string& kid : {std::string("r"), std::string("mine")}) {
    const std::string embedded = R"({"alg":"RS256","kid":")" + kid +
                                 R"(","jku":"https://evil.example/keys","jwk":)" + mine.jwk(kid) + "}";
    CHECK_FALSE(signed_payload(token_of(mine, "RS256", embedded, "{}"), keys));
  }
  // An Ed25519 key of small order has signatures that fit every message.
  const std::string small_order = base64url('\x01' + std::string(31, '\0'));
  const KeySet weak = one_key(R"({"kty":"OKP","crv":"Ed25519","x":")" + small_order + R"("})");
  const std::string forged = base64url('\x01' + std::string(63, '\0'));
  CHECK(outcome_of(base64url(R"({"alg":"EdDSA"})") + "." + base64url("{}") + "." + forged, weak) ==
        "its signature is wrong");
}

TEST_CASE("verifying key: a signature has one length, and one algorithm for each type of key") {
  const auto key_of = [](const SigningKey& key) {
    const auto set = KeySet::parse(test::key_set_of({key.jwk("k")}));
    REQUIRE_MESSAGE(set, set.error().message);
    return *set;
  };
  // A signature that begins with a zero stays the same number without it.
  const KeySet rsa_set = key_of(rsa_key());
  const VerifyingKey& rsa = **rsa_set.find(SigningAlgorithm::kPs256, "k");
  std::string signature;
  for (int i = 0; i < 5000 && !signature.starts_with('\0'); ++i)
    signature = rsa_key().sign("PS256", "message");
  REQUIRE(signature.starts_with('\0'));
  CHECK(rsa.verifies(SigningAlgorithm::kPs256, "message", signature));
  CHECK_FALSE(rsa.verifies(SigningAlgorithm::kPs256, "message", signature.substr(1)));
  CHECK_FALSE(rsa.verifies(SigningAlgorithm::kPs256, "message", '\0' + signature));
  const KeySet edwards_set = key_of(edwards_key());
  const VerifyingKey& edwards = **edwards_set.find(SigningAlgorithm::kEdDsa, "k");
  const std::string other = edwards_key().sign("EdDSA", "message");
  for (const SigningAlgorithm algorithm : kEverySigningAlgorithm) {
    CHECK(edwards.verifies(algorithm, "message", other) == (algorithm == SigningAlgorithm::kEdDsa));
    CHECK(rsa.verifies(algorithm, "message", signature) == (algorithm == SigningAlgorithm::kPs256));
  }
}

TEST_CASE("signed token: a header that is not plain is refused") {
  const KeySet keys = three_keys();
  const auto outcome = [&](const std::string& header) { return outcome_of(rs256(header), keys); };
  const std::string no_object = "its header is not a JSON object, is nested too deep, or has a member twice";
  CHECK(outcome(R"({"alg":"none","alg":"RS256","kid":"r"})") == no_object);
  CHECK(outcome(R"({"alg":"RS256","kid":"c","kid":"r"})") == no_object);
  CHECK(outcome(R"({"alg":"RS256","kid":"r","\u006bid":"r"})") == no_object);
  CHECK(outcome(R"({"alg":"RS256","kid":"r","x":{"a":1,"a":2}})") == no_object);
  CHECK(outcome(R"({"alg":"RS256","kid":"r","x":[[[[[[1]]]]]]})") == no_object);
  CHECK(outcome(R"({"alg":"RS256","kid":"r"} {})") == no_object);
  CHECK(outcome(R"(["RS256"])") == no_object);
  CHECK(outcome("") == no_object);
  CHECK(outcome("{\"alg\":\"RS256\",\"kid\":\"r\xff\"}") == no_object);
  CHECK(outcome(R"({"alg":"RS256","kid":"r","crit":["b64"],"b64":false})") ==
        "its header has critical extensions (crit)");
  CHECK(outcome(R"({"alg":"RS256","kid":"r","crit":[]})") == "its header has critical extensions (crit)");
  CHECK(outcome(R"({"alg":"RS256","kid":7})") == "kid in its header is not a string");
  CHECK(outcome(R"({"alg":"RS256","kid":"r","typ":null})") == "typ in its header is not a string");
  for (const std::string type : {"JWT", "jwt", "at+jwt", "AT+JWT", "application/at+jwt", "application/jwt"})
    CHECK(outcome(R"({"alg":"RS256","kid":"r","typ":")" + type + R"("})") == "signed: {}");
  for (const std::string type : {"", "dpop+jwt", "logout+jwt", "secevent+jwt", "JWS", "JWT ", "id+jwt"})
    CHECK(outcome(R"({"alg":"RS256","kid":"r","typ":")" + type + R"("})") ==
          "its type (typ) is '" + type + "', not at+jwt or JWT");
  // Text from the token is cleaned before it is in a message.
  CHECK(outcome(R"({"alg":"a\u0000b\u001b[2J","kid":"r"})") ==
        "its algorithm (alg) is 'a?b?[2J', not RS256, PS256, ES256 or EdDSA");
}

TEST_CASE("signed token: the key id names the key, and without one exactly one key must fit") {
  const KeySet keys = three_keys();
  CHECK(outcome_of(rs256(R"({"alg":"RS256"})"), keys) == "signed: {}");
  CHECK(outcome_of(rs256(R"({"alg":"RS256","kid":"x"})"), keys) == "the key set has no key 'x'");
  CHECK(outcome_of(rs256(R"({"alg":"RS256","kid":"R"})"), keys) == "the key set has no key 'R'");
  CHECK(outcome_of(rs256(R"({"alg":"RS256","kid":""})"), keys) == "the key set has no key ''");
  const auto two = KeySet::parse(test::key_set_of({rsa_key().jwk("r"), SigningKey::rsa().jwk("s")}));
  REQUIRE(two);
  CHECK(outcome_of(rs256(R"({"alg":"RS256"})"), *two) ==
        "it names no key (kid), and 2 keys of the key set fit RS256; exactly one must");
  CHECK(outcome_of(rs256(R"({"alg":"RS256","kid":"r"})"), *two) == "signed: {}");
  CHECK(outcome_of(rs256(R"({"alg":"RS256","kid":"s"})"), *two) == "its signature is wrong");
  CHECK(outcome_of(rs256(R"({"alg":"ES256"})"), *two) ==
        "it names no key (kid), and 0 keys of the key set fit ES256; exactly one must");
  // A key without an id is only for tokens without one.
  const KeySet nameless = one_key(rsa_key().jwk(""));
  CHECK(outcome_of(rs256(R"({"alg":"RS256"})"), nameless) == "signed: {}");
  CHECK(outcome_of(rs256(R"({"alg":"RS256","kid":"r"})"), nameless) == "the key set has no key 'r'");
}

TEST_CASE("signed token: a key that is for something else checks no signature") {
  const std::string token = rs256(R"({"alg":"RS256","kid":"r"})");
  const std::string other = SigningKey::p256().jwk("usable");
  const auto outcome = [&](const std::string& members) {
    const auto set = KeySet::parse(test::key_set_of({rsa_key().jwk("r", members), other}));
    REQUIRE_MESSAGE(set, set.error().message);
    const std::string named = outcome_of(token, *set);
    // Without its id it does not count either.
    CHECK(signed_payload(rs256(R"({"alg":"RS256"})"), *set).has_value() == (named == "signed: {}"));
    return named;
  };
  CHECK(outcome(R"("use":"sig","alg":"RS256","key_ops":["verify"])") == "signed: {}");
  CHECK(outcome(R"("use":"enc")") == "the key 'r' must not check signatures: its use is 'enc', not 'sig'");
  CHECK(outcome(R"("key_ops":["encrypt","wrapKey"])") ==
        "the key 'r' must not check signatures: its key_ops do not have 'verify'");
  CHECK(outcome(R"("key_ops":[])") ==
        "the key 'r' must not check signatures: its key_ops do not have 'verify'");
  CHECK(outcome(R"("alg":"PS256")") == "the key 'r' is only for the algorithm 'PS256', not RS256");
  CHECK(outcome(R"("alg":"RSA-OAEP")") == "the key 'r' is only for the algorithm 'RSA-OAEP', not RS256");
}

TEST_CASE("signed token: the encoding is canonical and the length bounded") {
  const KeySet keys = three_keys();
  const std::string right = rs256(R"({"alg":"RS256","kid":"r"})", "{\"a\":1}");
  REQUIRE(outcome_of(right, keys) == "signed: {\"a\":1}");
  for (const std::string& added : {std::string("="), std::string("=="), std::string("\n"), std::string(" "),
                                   std::string("+"), std::string("/"), std::string("\0", 1)})
    CHECK_MESSAGE(outcome_of(right + added, keys) == "its signature is not base64url without padding", added);
  CHECK(outcome_of("=" + right, keys) == "its header is not base64url without padding");
  CHECK(outcome_of(" " + right, keys) == "its header is not base64url without padding");
  // 256 bytes end in a digit with four unused bits: the same bytes have 16 texts, of which one counts.
  const std::string digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  std::size_t accepted = 0;
  for (const char digit : digits)
    if (signed_payload(right.substr(0, right.size() - 1) + digit, keys)) ++accepted;
  CHECK(accepted == 1);
  // The payload is decoded after the signature was found right, and strictly, too.
  const std::string covered = base64url(R"({"alg":"RS256","kid":"r"})") + ".e30=";
  CHECK(outcome_of(covered + "." + base64url(rsa_key().sign("RS256", covered)), keys) ==
        "its payload is not base64url without padding");
  for (const std::string text : {"", ".", "..", "...", "a.b", "a.b.c.d"})
    CHECK_FALSE(signed_payload(text, keys));
  // The longest token, and one byte more.
  const std::string header = R"({"alg":"RS256","kid":"r"})";
  const std::size_t fixed = right.size() - base64url("{\"a\":1}").size();
  const std::size_t payload = (kMaxSignedToken - fixed) / 4 * 3;
  const std::string longest = rs256(header, std::string(payload, ' '));
  REQUIRE(longest.size() <= kMaxSignedToken);
  CHECK(signed_payload(longest, keys));
  const std::string longer = rs256(header, std::string(payload + 3, ' '));
  CHECK(outcome_of(longer, keys) ==
        "it has " + std::to_string(longer.size()) + " bytes; at most 8192 are accepted");
}

TEST_CASE("base64url: one text for each string of bytes") {
  for (const std::string bytes : {"", "f", "fo", "foo", "foob", "fooba", "foobar", "\xfb\xff\xbf"})
    CHECK(decode_base64url(base64url(bytes)) == bytes);
  CHECK(decode_base64url("Zm9vYg") == "foob");  // RFC 4648, section 10
  for (const char* text : {"Z", "Zh", "Zm9vYh", "Zg==", "Zg=", "Zm 9", "Zm9+", "Zm9/", "Zm9vY", "\xc3\xa9"})
    CHECK_FALSE(decode_base64url(text));
}
