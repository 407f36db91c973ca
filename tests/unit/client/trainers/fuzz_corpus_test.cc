#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "tests/fuzz/trainer_targets.h"

using namespace fedge;

namespace {

// Feeds every file of the corpus, whole and cut, and says how many there were.
int replay(const char* corpus, void (*feed)(std::span<const std::byte>)) {
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(std::filesystem::path(FEDGE_SOURCE_DIR) /
                                                               "tests/fuzz/corpus" / corpus)) {
    std::ifstream file(entry.path(), std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    INFO(entry.path());
    const auto bytes = std::as_bytes(std::span(text));
    for (std::size_t size = 0; size <= bytes.size(); ++size) feed(bytes.first(size));
    ++files;
  }
  return files;
}

}  // namespace

TEST_CASE("fuzz corpus: every recorded stream of a trainer program is taken apart without harm") {
  CHECK(replay("trainer_frames", fuzz::feed_trainer_stream) >= 15);
}
