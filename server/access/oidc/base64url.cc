#include "server/access/oidc/base64url.h"

#include <cstdint>

namespace fedge::server {
namespace {

constexpr std::string_view kBase64urlDigits =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

}  // namespace

std::optional<std::string> decode_base64url(std::string_view text) {
  std::string bytes;
  bytes.reserve(text.size() * 3 / 4);
  std::uint32_t bits = 0;
  unsigned held = 0;  // number of bits that are no whole byte yet
  for (const char c : text) {
    const std::size_t digit = kBase64urlDigits.find(c);
    if (digit == std::string_view::npos) return std::nullopt;
    bits = (bits << 6) | static_cast<std::uint32_t>(digit);
    held += 6;
    if (held < 8) continue;
    held -= 8;
    bytes += static_cast<char>((bits >> held) & 0xff);
    bits &= (1U << held) - 1;
  }
  if (held >= 6 || bits != 0) return std::nullopt;
  return bytes;
}

}  // namespace fedge::server
