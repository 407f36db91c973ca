#include <doctest/doctest.h>

#include "tests/fuzz/replay.h"
#include "tests/fuzz/targets/swarm_targets.h"

using namespace fedge;

TEST_CASE(
    "fuzz corpus: through every recorded script of its neighbours a peer keeps to its links and its chunks") {
  CHECK(fuzz::replay("swarm_peer", fuzz::feed_swarm_peer) >= 15);
}
