// How many scripts of lies are played, and which: the test cases share FEDGE_SCRIPTS, and script n has the
// seed FEDGE_SCRIPT_SEED + n. A script that fails names its seed: FEDGE_SCRIPTS=1 FEDGE_SCRIPT_SEED=... plays
// it alone, in each test case.
#pragma once

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>

namespace fedge::test {

inline constexpr std::uint64_t kLiarCases = 3;  // test cases that call play_scripts()

// Returns how many were played.
template <class Play>
std::uint64_t play_scripts(const Play& play) {
  const auto number = [](const char* name, std::uint64_t otherwise) {
    const char* text = std::getenv(name);
    return text != nullptr ? std::strtoull(text, nullptr, 10) : otherwise;
  };
  const std::uint64_t scripts = (number("FEDGE_SCRIPTS", 60) + kLiarCases - 1) / kLiarCases;
  const std::uint64_t first = number("FEDGE_SCRIPT_SEED", 1);
  for (std::uint64_t seed = first; seed < first + scripts; ++seed) {
    INFO("FEDGE_SCRIPT_SEED=" << seed);
    play(seed);
  }
  return scripts;
}

}  // namespace fedge::test
