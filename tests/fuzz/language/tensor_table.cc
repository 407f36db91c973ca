#include <cstdint>

#include "tests/fuzz/targets/language_targets.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fedge::fuzz::feed_tensor_table(std::as_bytes(std::span(data, size)));
  return 0;
}
