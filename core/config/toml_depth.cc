#include "core/config/toml_depth.h"

#include <vector>

namespace fedge::config {
namespace {

// The end of the string that begins at `i`, or the end of the text. A single-line string ends with its line,
// because the parser stops there.
std::size_t end_of_string(std::string_view text, std::size_t i) {
  const char mark = text[i];
  const bool escapes = mark == '"';
  const auto marks_at = [&](std::size_t at) {
    std::size_t count = 0;
    while (at + count < text.size() && text[at + count] == mark) ++count;
    return count;
  };
  const std::size_t first = marks_at(i);
  const bool lines = first >= 3;
  if (first == 2) return i + 2;  // empty
  for (i += lines ? 3 : 1; i < text.size(); ++i) {
    if (escapes && text[i] == '\\') {
      ++i;
    } else if (!lines && (text[i] == mark || text[i] == '\n')) {
      return i + 1;
    } else if (lines && text[i] == mark) {
      const std::size_t count = marks_at(i);
      // Up to two quotes may precede the three that end the string.
      if (count >= 3) return i + (count < 5 ? count : 5);
      i += count - 1;
    }
  }
  return text.size();
}

}  // namespace

TomlDepth measure_toml(std::string_view text, std::size_t most) {
  TomlDepth deepest;
  std::vector<std::size_t> open;  // for each open bracket, the depth outside it
  std::size_t outside = 0;
  std::size_t dots = 0;
  std::size_t line = 1;
  for (std::size_t i = 0; i < text.size() && deepest.levels <= most;) {
    const char c = text[i];
    if (c == '"' || c == '\'') {
      const std::size_t end = end_of_string(text, i);
      for (; i < end; ++i)
        if (text[i] == '\n') ++line;
      continue;
    }
    ++i;
    if (c == '#') {
      while (i < text.size() && text[i] != '\n') ++i;
    } else if (c == '.') {
      ++dots;
    } else if (c == '[' || c == '{') {
      open.push_back(outside);
      outside += dots + 1;
      dots = 0;
    } else if ((c == ']' || c == '}') && !open.empty()) {
      outside = open.back();
      open.pop_back();
    } else if (c == ',' || c == '\n') {
      dots = 0;
    }
    if (c == '\n') ++line;
    if (outside + dots > deepest.levels) deepest = {outside + dots, line};
  }
  return deepest;
}

}  // namespace fedge::config
