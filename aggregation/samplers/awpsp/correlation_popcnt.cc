#include "aggregation/samplers/awpsp/correlation_body.h"

#if defined(__x86_64__)

namespace fedge::aggregation {

void walk_pairs_popcnt(const PairWalk& walk, double threshold) {
  walk_pairs(walk, PlainPairs{walk, threshold});
}

}  // namespace fedge::aggregation

#endif
