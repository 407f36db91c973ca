// Checks the signature of a JSON Web Token in the compact form (RFC 7515, RFC 7519), with the advice of
// RFC 8725. The work before the check of the signature is bounded: a token has at most kMaxSignedToken bytes,
// and only its header is read. Pure functions; any thread.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "core/result.h"
#include "server/access/oidc/key_set.h"

namespace fedge::server {

inline constexpr std::size_t kMaxSignedToken = 8 << 10;  // bytes

// Whether the text has the two dots of a signed token.
bool looks_like_signed_token(std::string_view text);
// Returns the payload that a key of the set has signed. kRefused says exactly what is wrong.
Result<std::string> signed_payload(std::string_view token, const KeySet& keys);

}  // namespace fedge::server
