// How deep a TOML text may lead its parser, which recurses with every part of a key and every bracket.
// Looked at before the text is parsed: a key of ten thousand parts takes 20 KB and would take the stack.
#pragma once

#include <cstddef>
#include <string_view>

namespace fedge::config {

struct TomlDepth {
  std::size_t levels = 0;  // at the deepest place: brackets that are open, and dots of the keys around it
  std::size_t line = 1;    // of that place
};

// An upper bound of how deep the parser gets before it finishes, or stops at the text's first error. Takes
// one pass and memory for the open brackets alone; stops counting above `most`.
TomlDepth measure_toml(std::string_view text, std::size_t most);

}  // namespace fedge::config
