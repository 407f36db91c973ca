// A data set small enough for tests that need no package. It has the files and shape of Fashion-MNIST with
// forty training and ten test samples by default: four and one of each class.
#pragma once

#include "tests/unit/learn/idx_fixture.h"

namespace fedge::test {

using learn::test::TemporaryDirectory;

inline void write_tiny_dataset(const TemporaryDirectory& directory, std::uint32_t training = 40) {
  const auto split = [&](const std::string& prefix, std::uint32_t samples) {
    learn::test::Bytes pixels;
    learn::test::Bytes labels;
    for (std::uint32_t i = 0; i < samples; ++i) {
      labels.push_back(static_cast<std::uint8_t>(i % 10));
      for (std::uint32_t p = 0; p < 784; ++p)
        pixels.push_back(static_cast<std::uint8_t>(p % 10 == i % 10 ? 250 : i));
    }
    directory.write(prefix + "-images-idx3-ubyte", learn::test::idx({samples, 28, 28}, pixels));
    directory.write(prefix + "-labels-idx1-ubyte", learn::test::idx({samples}, labels));
  };
  split("train", training);
  split("t10k", 10);
}

}  // namespace fedge::test
