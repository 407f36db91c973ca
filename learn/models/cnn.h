// The CNN of McMahan et al. 2017 (section 3): two 5x5 convolutions ("same" padding), each with ReLU and 2x2
// max-pooling, a dense layer with ReLU, and the output layer. Sizes are configurable. Parameters have
// PyTorch's names, shapes and order: "conv1.weight" is [out, in, 5, 5], and the first dense layer reads the
// last activation as channels x height x width. Input images are height x width x channels.
#pragma once

#include <memory>

#include "learn/model.h"

namespace fedge::learn {

struct CnnShape {
  InputShape input;  // height and width divisible by 4
  std::size_t channels1 = 32;
  std::size_t channels2 = 64;
  std::size_t dense = 512;
  std::size_t classes = 10;
  std::size_t points = 1;  // of a sample, each with a class
};

std::unique_ptr<Model> make_cnn(const CnnShape& shape);

}  // namespace fedge::learn
