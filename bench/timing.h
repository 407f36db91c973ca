// Times repeated work and keeps the fastest turn.
#pragma once

#include <algorithm>
#include <chrono>
#include <limits>

namespace fedge::bench {

// Returns the seconds of the fastest of `turns` executions.
template <class Work>
double best_of(int turns, const Work& work) {
  double best = std::numeric_limits<double>::infinity();
  for (int turn = 0; turn < turns; ++turn) {
    const auto begin = std::chrono::steady_clock::now();
    work();
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  return best;
}

}  // namespace fedge::bench
