// Words: the units within which BPE merges. Each newline is a word. Otherwise a word is a run of letters, a
// run of digits, or a run of other characters except newlines and spaces. Bytes from 0x80 on count as
// letters, and so do apostrophes between letters. One space belongs to the word after it; further spaces
// before it, and spaces before a newline or at the end, are a separate word. A word is cut at 64 bytes, which
// bounds the work per byte. Pure functions; linear.
#pragma once

#include <cstddef>
#include <string_view>

namespace fedge::learn {

inline constexpr std::size_t kMaxWordBytes = 64;

// The first word of the text; empty only if the text is. Concatenating all words gives the text.
std::string_view first_word(std::string_view text);

}  // namespace fedge::learn
