#include <doctest/doctest.h>

#include "tests/fuzz/replay.h"
#include "tests/fuzz/targets/directory_targets.h"

TEST_CASE(
    "fuzz corpus: every recorded directory record is refused, or counts in one place as it was signed") {
  CHECK(fedge::fuzz::replay("directory_record", fedge::fuzz::feed_directory_record) >= 20);
}
