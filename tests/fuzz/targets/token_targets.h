// Fuzz target of the identity provider's tokens: a token, claims and a key set, each read by itself. Whatever
// they are, no token counts that the owner of a key has not signed.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "core/check.h"
#include "server/access/oidc/claims.h"
#include "server/access/oidc/signed_token.h"
#include "server/access/roles.h"

namespace fedge::fuzz {

// The public keys of RFC 7515, appendix A.3, and of RFC 8037, appendix A.
inline const server::KeySet& published_keys() {
  static const server::KeySet keys = *server::KeySet::parse(
      R"({"keys":[{"kty":"EC","crv":"P-256","x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU",)"
      R"("y":"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"},)"
      R"({"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]})");
  return keys;
}

inline void feed_token(std::string_view token) {
  // All that was ever signed with these keys.
  static constexpr std::array<std::string_view, 2> kSigned = {
      "{\"iss\":\"joe\",\r\n \"exp\":1300819380,\r\n \"http://example.com/is_root\":true}",
      "Example of Ed25519 signing"};
  const auto payload = server::signed_payload(token, published_keys());
  if (payload)
    FEDGE_CHECK(std::ranges::find(kSigned, *payload) != kSigned.end(), "a token counts that nobody signed");
  else
    FEDGE_CHECK(!payload.error().message.empty(), "an error says what is wrong");
}

inline void feed_claims(std::string_view claims) {
  constexpr server::UnixSeconds kNow = 1'800'000'000;
  const auto bearer = server::check_claims(claims, {"joe", "fedge", "sub"}, kNow);
  if (!bearer) return FEDGE_CHECK(!bearer.error().message.empty(), "an error says what is wrong");
  FEDGE_CHECK(server::check_user_name(bearer->user), "a token names somebody who cannot be a user");
  FEDGE_CHECK(bearer->expires > kNow - 61 && bearer->expires <= kNow + 86'460, "a token lives for too long");
}

// Three parts with a line feed between them: a token, claims, and a key set.
inline void feed_signed_token(std::span<const std::byte> bytes) {
  std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  std::array<std::string_view, 2> parts;
  for (std::string_view& part : parts) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    part = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  feed_token(parts[0]);
  feed_claims(parts[1]);
  const auto keys = server::KeySet::parse(text);
  if (!keys) return FEDGE_CHECK(!keys.error().message.empty(), "an error says what is wrong");
  FEDGE_CHECK(keys->size() <= server::kMaxKeysInSet, "a key set has too many keys");
  (void)server::signed_payload(parts[0], *keys);
}

}  // namespace fedge::fuzz
