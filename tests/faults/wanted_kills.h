// How often a kill loop kills, and when: FEDGE_KILLS of all kill loops that take an equal share, and
// FEDGE_KILL_SEED.
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
  return {(number("FEDGE_KILLS", 40) + 4) / 5, number("FEDGE_KILL_SEED", 1)};
}

}  // namespace fedge::test
