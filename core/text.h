// Text from and for a peer. What arrives must be UTF-8 without control characters, so that it can be
// logged and shown as it is; what leaves is made so, because an error's text may hold anything.
#pragma once

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/result.h"

namespace fedge {

// Length in bytes of the well-formed UTF-8 character that the text, which is not empty, begins with
// (Unicode 15, table 3-7); 0 if there is none. `code` is its code point.
std::size_t take_character(std::string_view text, std::uint32_t& code);

enum class LineEnds { kRefused, kAllowed };  // allowed: line feed and tab, for documents

// `what` names the text in the error: "hello.software".
Result<void> check_text(std::string_view text, std::size_t max_bytes, const std::string& what,
                        LineEnds line_ends = LineEnds::kRefused);

// The text cut to max_bytes between two characters, whatever check_text refuses replaced by '?'.
std::string clean_text(std::string_view text, std::size_t max_bytes);

// The shortest text that reads back as this number.
template <class Number>
std::string number_text(Number value) {
  char text[32];
  return {text, std::to_chars(text, text + sizeof text, value).ptr};
}

// The text as JSON has it: in quotation marks, with escapes where they are needed. What is no UTF-8 becomes
// U+FFFD.
std::string json_text(const std::string& text);

}  // namespace fedge
