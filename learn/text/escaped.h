// Bytes as a word of printable ASCII, for the text formats of tokenizers: printable ASCII is written as is;
// the space, the backslash and every other byte are written as \xNN in lower case, so that bytes have exactly
// one text.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace fedge::learn {

void append_escaped(std::string& out, std::string_view bytes);
// Inverts append_escaped(). Nothing if `text` cannot be its output.
std::optional<std::string> unescaped(std::string_view text);

}  // namespace fedge::learn
