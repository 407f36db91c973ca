#include <doctest/doctest.h>

#include "tests/fuzz/replay.h"
#include "tests/fuzz/targets/toml_targets.h"

TEST_CASE(
    "fuzz corpus: every recorded TOML text is refused, or is as shallow as is allowed and has one text") {
  CHECK(fedge::fuzz::replay("toml_document", fedge::fuzz::feed_toml_document) >= 20);
}
