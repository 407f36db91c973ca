#include "protocol/frame.h"

#include <doctest/doctest.h>

using namespace fedge;
using namespace fedge::protocol;

TEST_CASE("frame: a header survives the way over the wire") {
  const FrameHeader header{MessageType::kChunk, 36, 262'144};
  const auto bytes = encode_frame_header(header);
  const auto parsed = parse_frame_header(bytes, {});
  REQUIRE(parsed);
  CHECK(*parsed == header);
}
