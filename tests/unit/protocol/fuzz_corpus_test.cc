#include <doctest/doctest.h>

#include "tests/fuzz/replay.h"
#include "tests/fuzz/targets/payload_targets.h"
#include "tests/fuzz/targets/protocol_targets.h"

using namespace fedge;
using fuzz::replay;

TEST_CASE("fuzz corpus: every recorded stream of frames is taken apart without harm") {
  CHECK(replay("protocol_frames", fuzz::feed_frames) >= 15);
}

TEST_CASE("fuzz corpus: every recorded value is decoded without harm") {
  CHECK(replay("protocol_values", fuzz::feed_values) >= 15);
}

TEST_CASE("fuzz corpus: every recorded payload is decoded or refused without harm") {
  CHECK(replay("protocol_payloads", fuzz::feed_payload) >= 15);
}

TEST_CASE(
    "fuzz corpus: every recorded manifest is refused, or its chunks are its payload and it stays as it is") {
  CHECK(replay("manifest", fuzz::feed_manifest) >= 25);
}

TEST_CASE("fuzz corpus: every recorded join token is refused without being repeated, or has one text") {
  CHECK(replay("join_token", fuzz::feed_token) >= 15);
}
