#include "core/text.h"

#include <algorithm>

namespace fedge {
std::size_t take_character(std::string_view text, std::uint32_t& code) {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(text[i]); };
  const std::uint8_t lead = byte(0);
  std::size_t length = 0;
  std::uint32_t smallest = 0;
  if (lead < 0x80) {
    code = lead;
    return 1;
  }
  if (lead >= 0xc2 && lead <= 0xdf) length = 2, smallest = 0x80, code = lead & 0x1fU;
  if (lead >= 0xe0 && lead <= 0xef) length = 3, smallest = 0x800, code = lead & 0x0fU;
  if (lead >= 0xf0 && lead <= 0xf4) length = 4, smallest = 0x10000, code = lead & 0x07U;
  if (length == 0 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0U) != 0x80) return 0;
    code = code << 6 | (byte(i) & 0x3fU);
  }
  const bool surrogate = code >= 0xd800 && code <= 0xdfff;
  return code < smallest || code > 0x10ffff || surrogate ? 0 : length;
}

namespace {

// Control characters, and the format characters that change the direction of text on a terminal.
bool is_control(std::uint32_t code) {
  return code < 0x20 || (code >= 0x7f && code <= 0x9f) || code == 0x2028 || code == 0x2029 ||
         (code >= 0x202a && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
}

}  // namespace

Result<void> check_text(std::string_view text, std::size_t max_bytes, const std::string& what,
                        LineEnds line_ends) {
  if (text.size() > max_bytes)
    return invalid(what + " has " + std::to_string(text.size()) + " bytes; at most " +
                   std::to_string(max_bytes) + " are allowed");
  for (std::size_t i = 0; i < text.size();) {
    std::uint32_t code = 0;
    const std::size_t length = take_character(text.substr(i), code);
    if (length == 0) return invalid(what + " is not valid UTF-8 at byte " + std::to_string(i));
    const bool line_end = line_ends == LineEnds::kAllowed && (code == '\n' || code == '\t');
    if (is_control(code) && !line_end)
      return invalid(what + " contains a control character at byte " + std::to_string(i));
    i += length;
  }
  return {};
}

std::string clean_text(std::string_view text, std::size_t max_bytes) {
  std::string clean;
  for (std::size_t i = 0; i < text.size();) {
    std::uint32_t code = 0;
    const std::size_t length = take_character(text.substr(i), code);
    const bool good = length > 0 && !is_control(code);
    const std::string_view next = good ? text.substr(i, length) : "?";
    if (clean.size() + next.size() > max_bytes) break;
    clean += next;
    i += length > 0 ? length : 1;
  }
  return clean;
}

Result<void> check_label(std::string_view label) {
  constexpr std::size_t kLongest = 64;
  const bool shaped = !label.empty() && label.size() <= kLongest && std::ranges::all_of(label, [](char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
           std::string_view("._:=-").find(c) != std::string_view::npos;
  });
  if (shaped) return {};
  return invalid("a label must have 1 to 64 of the characters A-Z, a-z, 0-9 and . _ : = -, not '" +
                 clean_text(std::string(label), 80) + "'");
}

}  // namespace fedge
