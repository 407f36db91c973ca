// The walk over all pairs of neighbours as correlation.cc calls it, compiled once for every processor and
// once for those of x86-64 that count bits with an instruction. Both give the same bits. Private to
// correlation*.cc and their test.
#pragma once

#include <cstddef>
#include <cstdint>

#include "aggregation/samplers/awpsp/correlation.h"

namespace fedge::aggregation {

struct Place {
  std::uint32_t begin = 0;  // of its neighbours
  std::int32_t downs = 0;   // rounds that it was not there in
};

// All arrays are by place in the order of latency, and hold `count` elements.
struct PairWalk {
  const Trace* traces = nullptr;
  std::size_t count = 0;
  std::size_t neighbours = 0;  // less than `count`, unless that is 0
  Place* places = nullptr;     // scratch
  double* risk = nullptr;      // out
  // Out: trees of those that are joined, each below the first of its own. Null where clusters are not asked
  // for.
  std::uint32_t* parent = nullptr;
};

void walk_pairs_portable(const PairWalk& walk, double threshold);
#if defined(__x86_64__)
void walk_pairs_popcnt(const PairWalk& walk, double threshold);  // for processors that have it
#endif

}  // namespace fedge::aggregation
