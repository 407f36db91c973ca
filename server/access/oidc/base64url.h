// Decodes base64url without padding (RFC 7515, appendix C), as tokens and key sets use it. Strict, so that
// two texts never mean the same bytes: a changed text is a changed token.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace fedge::server {

// Returns the bytes; nothing if a character is foreign (padding, too), the length is impossible, or unused
// bits are not zero.
std::optional<std::string> decode_base64url(std::string_view text);

}  // namespace fedge::server
