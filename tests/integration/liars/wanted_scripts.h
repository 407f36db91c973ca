// The number and seeds of scripts of lies. The test cases share FEDGE_SCRIPTS, and a case's script n has the
// seed FEDGE_SCRIPT_SEED + n. A failing script prints its seed: FEDGE_SCRIPTS=1 FEDGE_SCRIPT_SEED=... plays
// only this one in each test case.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

namespace fedge::test {

// Plays a test case's share of the scripts, in percent; returns their number.
template <class Play>
std::uint64_t play_scripts(std::uint64_t percent, const Play& play) {
  const auto number = [](const char* name, std::uint64_t otherwise) {
    const char* text = std::getenv(name);
    return text != nullptr ? std::strtoull(text, nullptr, 10) : otherwise;
  };
  const std::uint64_t scripts = std::max<std::uint64_t>(1, number("FEDGE_SCRIPTS", 100) * percent / 100);
  const std::uint64_t first = number("FEDGE_SCRIPT_SEED", 1);
  for (std::uint64_t seed = first; seed < first + scripts; ++seed) {
    INFO("FEDGE_SCRIPT_SEED=" << seed);
    play(seed);
  }
  return scripts;
}

}  // namespace fedge::test
