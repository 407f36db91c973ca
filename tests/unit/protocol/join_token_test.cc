#include "protocol/join_token.h"

#include <doctest/doctest.h>

#include "core/crypto/sha256.h"

using namespace fedge;
using namespace fedge::protocol;

namespace {

JoinToken example() {
  PublicKey key;
  for (std::size_t i = 0; i < key.bytes.size(); ++i) key.bytes[i] = static_cast<std::uint8_t>(i);
  return {.addresses = {{"192.0.2.7", 7000}, {"coordinator.example", 443}},
          .coordinator = key,
          .secret = "0123456789abcdef0123456789abcdef"};
}

// python3: base64.urlsafe_b64encode(body + hashlib.sha256(b"fedge1." + body).digest()[:4]) with
// body = b"\x02\x09192.0.2.7\x58\x1b\x13coordinator.example\xbb\x01" + bytes(range(32)) + b"\x20" + secret
constexpr const char* kExample =
    "fedge1."
    "AgkxOTIuMC4yLjdYGxNjb29yZGluYXRvci5leGFtcGxluwEAAQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHyAwMTIzNDU2Nzg5"
    "YWJjZGVmMDEyMzQ1Njc4OWFiY2RlZgLOgN4";

}  // namespace

TEST_CASE("join token: the text is what another implementation makes of the same fields") {
  CHECK(encode_join_token(example()) == kExample);
}

TEST_CASE("join token: every field comes back") {
  const auto token = parse_join_token(kExample);
  REQUIRE(token);
  REQUIRE(token->addresses.size() == 2);
  CHECK(to_string(token->addresses[0]) == "192.0.2.7:7000");
  CHECK(to_string(token->addresses[1]) == "coordinator.example:443");
  CHECK(token->coordinator == example().coordinator);
  CHECK(token->secret == example().secret);
  JoinToken six = example();
  six.addresses = {{"2001:db8::7", 7000}};
  const auto back = parse_join_token(encode_join_token(six));
  REQUIRE(back);
  CHECK(back->addresses[0].host == "2001:db8::7");
}

TEST_CASE("join token: cut anywhere, it is incomplete") {
  const std::string text = kExample;
  for (std::size_t size = 0; size < text.size(); ++size) {
    const auto token = parse_join_token(text.substr(0, size));
    REQUIRE_FALSE(token);
    if (size >= 7) CHECK(token.error().code == ErrorCode::kCorrupt);
  }
  CHECK_FALSE(parse_join_token(text + "A"));
  CHECK_FALSE(parse_join_token(text + "\n"));
  CHECK_FALSE(parse_join_token(" " + text));
}

TEST_CASE("join token: with any one character changed it is refused, and the error does not repeat it") {
  const std::string text = kExample;
  for (std::size_t i = 0; i < text.size(); ++i) {
    for (const char other : {'A', 'b', '_', '=', ' '}) {
      if (text[i] == other) continue;
      std::string changed = text;
      changed[i] = other;
      const auto token = parse_join_token(changed);
      REQUIRE_FALSE(token);
      CHECK(token.error().message.find(text.substr(40, 12)) == std::string::npos);
    }
  }
}

TEST_CASE("join token: another version and other text get errors of their own") {
  const auto later = parse_join_token("fedge2.AAAA");
  REQUIRE_FALSE(later);
  CHECK(later.error().code == ErrorCode::kUnsupported);
  const auto other = parse_join_token("not a token");
  REQUIRE_FALSE(other);
  CHECK(other.error().code == ErrorCode::kInvalid);
  CHECK_FALSE(parse_join_token("fedge1." + std::string(1 << 20, 'A')));
}
