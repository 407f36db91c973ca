// Feeds every file of a fuzz target's corpus to the target's function, whole and truncated, as the unit tests
// do.
#pragma once

#include <doctest/doctest.h>

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>
#include <string>

namespace fedge::fuzz {

enum class Cuts { kEvery, kNone };  // kEvery: also every prefix of a file

// Returns the number of files.
inline int replay(const char* corpus, void (*feed)(std::span<const std::byte>), Cuts cuts = Cuts::kEvery) {
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(std::filesystem::path(FEDGE_SOURCE_DIR) /
                                                               "tests/fuzz/corpus" / corpus)) {
    std::ifstream file(entry.path(), std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    INFO(entry.path());
    CHECK(text.size() <= 4096);
    const auto bytes = std::as_bytes(std::span(text));
    for (std::size_t size = cuts == Cuts::kEvery ? 0 : bytes.size(); size <= bytes.size(); ++size)
      feed(bytes.first(size));
    ++files;
  }
  return files;
}

}  // namespace fedge::fuzz
