#include <cstdint>

#include "tests/fuzz/targets/api_targets.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fedge::fuzz::feed_admin_api(std::as_bytes(std::span(data, size)));
  return 0;
}
