// Data sets that a model can learn within a second: 1,000 training and 500 test images. One is generated
// here, so that every machine has it; the other is the first images of Fashion-MNIST.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/platform/files.h"
#include "core/rng.h"
#include "learn/data/idx.h"
#include "tests/support/skip.h"
#include "tests/unit/learn/idx_fixture.h"

namespace fedge::test {

inline constexpr std::uint32_t kTrainImages = 1000;
inline constexpr std::uint32_t kTestImages = 500;

// Generates images. Each class has two shapes of three soft spots. An image shows one of them, shifted by up
// to two pixels, with varying brightness and noise.
class DrawnImages {
 public:
  DrawnImages() {
    Rng rng(2024);
    for (auto& shape : shapes_)
      for (Spot& spot : shape) spot = {6 + 16 * rng.uniform(), 6 + 16 * rng.uniform(), 2 + 2 * rng.uniform()};
  }

  void draw(std::size_t label, Rng& rng, learn::test::Bytes& pixels) const {
    const auto& shape = shapes_[2 * label + rng.below(2)];
    const double right = static_cast<double>(rng.below(5)) - 2;
    const double down = static_cast<double>(rng.below(5)) - 2;
    const double brightness = 120 + 100 * rng.uniform();
    for (int y = 0; y < 28; ++y)
      for (int x = 0; x < 28; ++x) {
        double value = 40 * rng.normal();
        for (const Spot& spot : shape)
          value += brightness * std::exp(-(std::pow(x - spot.x - right, 2) + std::pow(y - spot.y - down, 2)) /
                                         (2 * spot.width * spot.width));
        pixels.push_back(static_cast<std::uint8_t>(std::clamp(value, 0.0, 255.0)));
      }
  }

 private:
  struct Spot {
    double x = 0;
    double y = 0;
    double width = 0;
  };
  std::array<std::array<Spot, 3>, 20> shapes_{};
};

inline void write_drawn_dataset(const learn::test::TemporaryDirectory& directory) {
  const DrawnImages images;
  Rng rng(7);
  for (const auto& [prefix, count] :
       {std::pair<std::string, std::uint32_t>{"train", kTrainImages}, {"t10k", kTestImages}}) {
    learn::test::Bytes pixels;
    learn::test::Bytes labels;
    for (std::uint32_t i = 0; i < count; ++i) {
      labels.push_back(static_cast<std::uint8_t>(i % 10));
      images.draw(i % 10, rng, pixels);
    }
    directory.write(prefix + "-images-idx3-ubyte", learn::test::idx({count, 28, 28}, pixels));
    directory.write(prefix + "-labels-idx1-ubyte", learn::test::idx({count}, labels));
  }
}

// Returns the first `count` images or labels of a file of the package; empty if it is not installed.
inline learn::test::Bytes first_elements(const std::string& name, std::size_t rank, std::size_t size) {
  const auto file = read_file("/usr/share/datasets/fashion-mnist/" + name + ".gz", 1 << 26);
  if (!file) return {};
  auto reader = learn::IdxReader::open(std::as_bytes(std::span(*file)), name, rank);
  REQUIRE(reader);
  learn::test::Bytes elements(size);
  REQUIRE(reader->read(elements));
  return elements;
}

// Returns false if Fashion-MNIST is not installed; the test case is then skipped.
inline bool write_fashion_dataset(const learn::test::TemporaryDirectory& directory) {
  for (const auto& [prefix, count] :
       {std::pair<std::string, std::uint32_t>{"train", kTrainImages}, {"t10k", kTestImages}}) {
    const auto pixels = first_elements(prefix + "-images-idx3-ubyte", 3, std::size_t{count} * 784);
    const auto labels = first_elements(prefix + "-labels-idx1-ubyte", 1, count);
    if (pixels.empty() || labels.empty()) {
      skip("Fashion-MNIST not found", "dataset-fashion-mnist");
      return false;
    }
    directory.write(prefix + "-images-idx3-ubyte", learn::test::idx({count, 28, 28}, pixels));
    directory.write(prefix + "-labels-idx1-ubyte", learn::test::idx({count}, labels));
  }
  return true;
}

}  // namespace fedge::test
