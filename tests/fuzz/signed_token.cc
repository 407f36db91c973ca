#include <cstdint>

#include "tests/fuzz/targets/token_targets.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fedge::fuzz::feed_signed_token(std::as_bytes(std::span(data, size)));
  return 0;
}
