// The words within which BPE merges. Each newline is one. Else a word is a run of letters, of digits or of
// anything but those, newlines and spaces; bytes from 0x80 on are letters, as are apostrophes between
// letters. A space belongs to the word that follows it; spaces before that one, before a newline or at the
// end are a word of their own. At 64 bytes a word is cut, which bounds the work per byte.
// Pure functions; linear.
#pragma once

#include <cstddef>
#include <string_view>

namespace fedge::learn {

inline constexpr std::size_t kMaxWordBytes = 64;

// The word that the text begins with; empty only if the text is. All words, in order, are the text.
std::string_view first_word(std::string_view text);

}  // namespace fedge::learn
