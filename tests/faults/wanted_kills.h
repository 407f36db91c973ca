// The number and seed of a kill loop's kills. The six settings of a single run share FEDGE_KILLS, and the
// loop with two runs kills as often as each of them. FEDGE_KILL_SEED draws the times.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>

namespace fedge::test {

struct WantedKills {
  std::size_t kills;
  std::uint64_t seed;
};

inline WantedKills wanted_kills() {
  const auto number = [](const char* name, std::uint64_t otherwise) {
    const char* text = std::getenv(name);
    return text != nullptr ? std::strtoull(text, nullptr, 10) : otherwise;
  };
  return {(number("FEDGE_KILLS", 40) + 5) / 6, number("FEDGE_KILL_SEED", 1)};
}

}  // namespace fedge::test
