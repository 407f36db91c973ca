#include "learn/text/escaped.h"

#include <cstddef>

namespace fedge::learn {
namespace {

constexpr char kHexDigits[] = "0123456789abcdef";

bool is_plain(char c) { return c > ' ' && c <= '~' && c != '\\'; }

// 16 if `c` is not a hexadecimal digit.
std::size_t hex_value(char c) {
  const std::size_t digit = std::string_view(kHexDigits, 16).find(c);
  return digit == std::string_view::npos ? 16 : digit;
}

}  // namespace

void append_escaped(std::string& out, std::string_view bytes) {
  for (const char c : bytes) {
    if (is_plain(c)) {
      out += c;
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    out += "\\x";
    out += kHexDigits[byte >> 4U];
    out += kHexDigits[byte & 15U];
  }
}

std::optional<std::string> unescaped(std::string_view text) {
  std::string bytes;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (is_plain(text[i])) {
      bytes += text[i];
      continue;
    }
    if (text[i] != '\\' || text.size() - i < 4 || text[i + 1] != 'x') return std::nullopt;
    const std::size_t high = hex_value(text[i + 2]);
    const std::size_t low = hex_value(text[i + 3]);
    if (high > 15 || low > 15) return std::nullopt;
    const char c = static_cast<char>(high * 16 + low);
    if (is_plain(c)) return std::nullopt;
    bytes += c;
    i += 3;
  }
  return bytes;
}

}  // namespace fedge::learn
