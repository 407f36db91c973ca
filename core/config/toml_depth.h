// Measures the nesting depth of TOML before parsing. The parser recurses with every part of a key and every
// bracket: a key of ten thousand parts takes 20 KB but could exhaust the stack.
#pragma once

#include <cstddef>
#include <string_view>

namespace fedge::config {

struct TomlDepth {
  std::size_t levels = 0;  // at the deepest place: open brackets plus dots of the keys around it
  std::size_t line = 1;    // of that place
};

// An upper bound on the parser's recursion until it finishes or stops at the first error. One pass; memory
// only for the open brackets. Stops counting above `most`.
TomlDepth measure_toml(std::string_view text, std::size_t most);

}  // namespace fedge::config
