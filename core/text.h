// Strings from and for a peer. Received strings must be UTF-8 without control characters, so that they can be
// logged and shown as they are. Sent strings are cleaned, because an error message may contain anything.
#pragma once

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/result.h"

namespace fedge {

// Length in bytes of the well-formed UTF-8 character at the start of the non-empty string (Unicode 15, table
// 3-7); 0 if there is none. `code` is its code point.
std::size_t take_character(std::string_view text, std::uint32_t& code);

enum class LineEnds { kRefused, kAllowed };  // allowed: line feed and tab, for documents

// Refuses invalid strings; `what` names the string in the error: "hello.software".
Result<void> check_text(std::string_view text, std::size_t max_bytes, const std::string& what,
                        LineEnds line_ends = LineEnds::kRefused);

// Cuts the string to max_bytes between two characters and replaces everything that check_text refuses by '?'.
std::string clean_text(std::string_view text, std::size_t max_bytes);

// The shortest string that reads back as this number.
template <class Number>
std::string number_text(Number value) {
  char text[32];
  return {text, std::to_chars(text, text + sizeof text, value).ptr};
}

// The string as a JSON literal: quoted, with escapes where needed. Bytes that are not UTF-8 become U+FFFD.
std::string json_text(const std::string& text);

// A label of a client consists of 1 to 64 of the characters A-Z, a-z, 0-9, '.', '_', ':', '=' and '-'.
Result<void> check_label(std::string_view label);

}  // namespace fedge
