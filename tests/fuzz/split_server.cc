#include <cstdint>

#include "tests/fuzz/targets/split_targets.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fedge::fuzz::feed_split_server(std::as_bytes(std::span(data, size)));
  return 0;
}
