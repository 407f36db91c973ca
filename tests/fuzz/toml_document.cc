#include <cstdint>

#include "tests/fuzz/targets/toml_targets.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fedge::fuzz::feed_toml_document(std::as_bytes(std::span(data, size)));
  return 0;
}
