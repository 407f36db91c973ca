// Reads the numbers that the scripts of tests/reference/ wrote, and generates the common initial numbers.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace fedge::learn::test {

// Fills in the same numbers as hashed() of the Python script, times `scale` (a power of two).
inline void fill_hashed(std::span<float> values, std::uint32_t stream, float scale) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    std::uint32_t x = static_cast<std::uint32_t>(i) + stream * 0x9E3779B9U;
    for (const std::uint32_t factor : {0x7FEB352DU, 0x846CA68BU}) {
      x ^= x >> 16;
      x *= factor;
    }
    x ^= x >> 15;
    values[i] = (static_cast<float>(x >> 16) / 32768.0F - 1.0F) * scale;
  }
}

using Blocks = std::map<std::string, std::vector<double>>;

inline Blocks read_blocks(const std::string& name) {
  const std::string path = std::string(FEDGE_SOURCE_DIR) + "/tests/reference/torch/torch_" + name + ".txt";
  std::ifstream in(path);
  REQUIRE_MESSAGE(in.good(), path);
  Blocks blocks;
  std::string block;
  std::size_t count = 0;
  while (in >> block >> count) {
    blocks[block].resize(count);
    for (double& value : blocks[block]) in >> value;
    REQUIRE_MESSAGE(in.good(), path);
  }
  return blocks;
}

// Returns the largest difference between every stride-th of `actual` and `expected`, relative to the largest
// expected number.
inline double difference(std::span<const float> actual, const std::vector<double>& expected,
                         std::size_t stride) {
  REQUIRE((actual.size() + stride - 1) / stride == expected.size());
  double worst = 0;
  double largest = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    largest = std::max(largest, std::abs(expected[i]));
    const double error = std::abs(static_cast<double>(actual[i * stride]) - expected[i]);
    worst = std::isnan(error) ? 1e300 : std::max(worst, error);
  }
  return worst / largest;
}

}  // namespace fedge::learn::test
