// Checks the claims that a token must have: issuer, audience, times, purpose and user.
#include "server/access/oidc/claims.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <string>

using namespace fedge;
using namespace fedge::server;

namespace {

using ClaimJson = nlohmann::json;

constexpr UnixSeconds kClaimsNow = 1'800'000'000;
const ExpectedClaims kExpectedClaims{"https://id.hospital.org/", "fedge", "preferred_username"};

ClaimJson good_claims() {
  return {
      {"iss", "https://id.hospital.org/"}, {"aud", "fedge"},  {"iat", kClaimsNow - 10},
      {"exp", kClaimsNow + 600},           {"sub", "00u1a2"}, {"preferred_username", "alice@hospital.org"}};
}

// The user, or why the claims are refused.
std::string bearer_in(const std::string& payload, const ExpectedClaims& expected = kExpectedClaims,
                      UnixSeconds now = kClaimsNow) {
  const auto bearer = check_claims(payload, expected, now);
  if (!bearer) CHECK(bearer.error().code == ErrorCode::kRefused);
  return bearer ? bearer->user : bearer.error().message;
}
std::string bearer_of_json(const ClaimJson& claims, const ExpectedClaims& expected = kExpectedClaims,
                           UnixSeconds now = kClaimsNow) {
  return bearer_in(claims.dump(), expected, now);
}
// The good claims with one of another value.
std::string with_claim(const char* name, const ClaimJson& value) {
  ClaimJson claims = good_claims();
  claims[name] = value;
  return bearer_of_json(claims);
}
std::string without_claim(const char* name) {
  ClaimJson claims = good_claims();
  claims.erase(name);
  return bearer_of_json(claims);
}

const std::string kAlice = "alice@hospital.org";

}  // namespace

TEST_CASE("claims: the issuer is compared exactly") {
  CHECK(bearer_of_json(good_claims()) == kAlice);
  for (const char* issuer :
       {"https://id.hospital.org", "https://ID.hospital.org/", "https://id.hospital.org//",
        "http://id.hospital.org/", "https://evil.example/", ""})
    CHECK(with_claim("iss", issuer) ==
          "it was issued by '" + std::string(issuer) + "', not by 'https://id.hospital.org/'");
  CHECK(without_claim("iss") == "its claim iss is missing");
  CHECK(with_claim("iss", ClaimJson::array({"https://id.hospital.org/"})) == "its claim iss is not a string");
}

TEST_CASE("claims: the audience is the coordinator's, alone or in a list") {
  const std::string refused = "it is not for the audience 'fedge' (claim aud)";
  CHECK(with_claim("aud", ClaimJson::array({"fedge"})) == kAlice);
  CHECK(with_claim("aud", ClaimJson::array({"account", "fedge"})) == kAlice);
  CHECK(with_claim("aud", "account") == refused);
  CHECK(with_claim("aud", "fedge2") == refused);
  CHECK(with_claim("aud", "Fedge") == refused);
  CHECK(with_claim("aud", "") == refused);
  CHECK(with_claim("aud", nullptr) == refused);
  CHECK(with_claim("aud", ClaimJson::array()) == refused);
  CHECK(with_claim("aud", ClaimJson::array({"account"})) == refused);
  CHECK(with_claim("aud", ClaimJson::array({"fedge", 7})) == refused);
  CHECK(with_claim("aud", ClaimJson::array({ClaimJson::array({"fedge"})})) == refused);
  CHECK(with_claim("aud", ClaimJson{{"fedge", true}}) == refused);
  CHECK(without_claim("aud") == refused);
}

TEST_CASE("claims: a token counts from its beginning to its end, with a minute for the clocks") {
  const UnixSeconds end = kClaimsNow + 600;
  const std::string expired = "it expired at " + calendar_text(end);
  const auto at = [&](UnixSeconds now) { return bearer_of_json(good_claims(), kExpectedClaims, now); };
  CHECK(at(end) == kAlice);
  CHECK(at(end + 59) == kAlice);
  CHECK(at(end + 60) == expired);
  CHECK(at(end + 1'000'000) == expired);
  CHECK(at(kClaimsNow - 10 - 60) == kAlice);
  CHECK(at(kClaimsNow - 10 - 61) ==
        "it was issued in the future, at " + calendar_text(kClaimsNow - 10) + " (claim iat)");
  CHECK(with_claim("nbf", kClaimsNow + 60) == kAlice);
  CHECK(with_claim("nbf", kClaimsNow + 61) ==
        "it is not valid before " + calendar_text(kClaimsNow + 61) + " (claim nbf)");
  CHECK(with_claim("exp", static_cast<double>(kClaimsNow) - 59.5) ==
        "it expired at " + calendar_text(kClaimsNow - 60));
  CHECK(with_claim("exp", static_cast<double>(kClaimsNow) + 0.5) == kAlice);
  CHECK(without_claim("exp") == "its claim exp is missing");
  CHECK(without_claim("iat") == "its claim iat is missing");
  for (const char* name : {"exp", "iat", "nbf"})
    for (const ClaimJson& value :
         {ClaimJson("1800000600"), ClaimJson(true), ClaimJson(nullptr), ClaimJson(-1), ClaimJson(1e300),
          ClaimJson(-1e300), ClaimJson(UINT64_MAX), ClaimJson(INT64_MIN), ClaimJson::array({kClaimsNow})})
      CHECK(with_claim(name, value) ==
            "its claim " + std::string(name) + " is not a time in seconds since 1970");
  // What JSON has no number for is no JSON.
  const std::string no_object = "its payload is not a JSON object, is nested too deep, or has a member twice";
  CHECK(bearer_in(R"({"exp":1e999})") == no_object);
  CHECK(bearer_in(R"({"exp":NaN})") == no_object);
}

TEST_CASE("claims: a token that lives for longer than a day is refused") {
  constexpr UnixSeconds kDay = 86'400;
  CHECK(with_claim("exp", kClaimsNow - 10 + kDay) == kAlice);
  CHECK(with_claim("exp", kClaimsNow - 10 + kDay + 1) ==
        "it is valid for 86401 seconds after it was issued; at most 86400 are accepted");
  CHECK(with_claim("iat", 0) == "it is valid for " + std::to_string(kClaimsNow + 600) +
                                    " seconds after it was issued; at most 86400 are accepted");
}

TEST_CASE("claims: what is no access token for its bearer is refused") {
  const std::string id_token = " shows, and an access token is needed";
  CHECK(with_claim("at_hash", "x") == "it is an ID token, as its claim at_hash" + id_token);
  CHECK(with_claim("c_hash", "x") == "it is an ID token, as its claim c_hash" + id_token);
  CHECK(with_claim("events", ClaimJson::object()) ==
        "it reports an event (claim events) and gives no access");
  CHECK(with_claim("cnf", ClaimJson{{"jkt", "x"}}) ==
        "it is bound to a key of its bearer (claim cnf), which this API does not check");
  CHECK(with_claim("typ", "Bearer") == kAlice);
  for (const ClaimJson& type :
       {ClaimJson("ID"), ClaimJson("Refresh"), ClaimJson("Offline"), ClaimJson(nullptr)})
    CHECK(with_claim("typ", type) == "its claim typ is not 'Bearer', and an access token is needed");
}

TEST_CASE("claims: the user is the claim's value, exactly, if that is a name of a user") {
  const auto in = [](const char* claim, const ClaimJson& claims) {
    return bearer_of_json(claims, {"https://id.hospital.org/", "fedge", claim});
  };
  CHECK(in("sub", good_claims()) == "00u1a2");
  for (const char* name : {"Alice@hospital.org", "", "alice hospital", "alice\n", "auth0|7", "*", "@alice",
                           "../x", "\xd0\xb0lice"})
    CHECK(with_claim("preferred_username", name)
              .starts_with("its claim preferred_username names no user: a user's name must have 1 to 64 of "
                           "the characters a-z, 0-9"));
  CHECK_FALSE(with_claim("preferred_username", std::string(65, 'a')) == std::string(65, 'a'));
  CHECK(with_claim("preferred_username", std::string(64, 'a')) == std::string(64, 'a'));
  CHECK(with_claim("preferred_username", ClaimJson::array({"alice"})) ==
        "its claim preferred_username is not a string");
  CHECK(without_claim("preferred_username") == "its claim preferred_username is missing");
  // An address that the provider has not checked may be somebody else's.
  ClaimJson mail = good_claims();
  const std::string unverified = "its claim email counts only if email_verified is true";
  mail["email"] = "bob@hospital.org";
  CHECK(in("email", mail) == unverified);
  for (const ClaimJson& value : {ClaimJson(false), ClaimJson("true"), ClaimJson(1), ClaimJson(nullptr)}) {
    mail["email_verified"] = value;
    CHECK(in("email", mail) == unverified);
  }
  mail["email_verified"] = true;
  CHECK(in("email", mail) == "bob@hospital.org");
}

TEST_CASE("claims: a payload that can be read in two ways, or not at all, is refused") {
  const std::string no_object = "its payload is not a JSON object, is nested too deep, or has a member twice";
  const std::string text = good_claims().dump();
  CHECK(bearer_in(text) == kAlice);
  CHECK(bearer_in(text.substr(0, text.size() - 1) + R"(,"preferred_username":"root"})") == no_object);
  CHECK(bearer_in(text.substr(0, text.size() - 1) + R"(,"preferred\u005fusername":"root"})") == no_object);
  CHECK(bearer_in(R"({"preferred_username":"root",)" + text.substr(1)) == no_object);
  CHECK(bearer_in(text.substr(0, text.size() - 1) + R"(,"realm":{"roles":["a"],"roles":[]}})") == no_object);
  CHECK(bearer_in(text.substr(0, text.size() - 1) + R"(,"realm":[{"a":1},{"a":2}]})") == kAlice);
  CHECK(bearer_in(text.substr(0, text.size() - 1) + R"(,"deep":[[[[[[[[[1]]]]]]]]]})") == no_object);
  CHECK(bearer_in(text + text) == no_object);
  CHECK(bearer_in(text.substr(0, text.size() - 1)) == no_object);
  for (const char* other : {"", "[]", "7", "null", "\"alice\"", "\xff"}) CHECK(bearer_in(other) == no_object);
}
