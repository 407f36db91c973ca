#include <doctest/doctest.h>

#include "tests/fuzz/replay.h"
#include "tests/fuzz/targets/trainer_targets.h"

using namespace fedge;

TEST_CASE("fuzz corpus: every recorded stream of a trainer program is taken apart without harm") {
  CHECK(fuzz::replay("trainer_frames", fuzz::feed_trainer_stream) >= 15);
}
