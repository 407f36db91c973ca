// LayerSpec: one layer of a model that a run file lists (model.kind = "layers"). learn/layers/kinds.h says
// what each kind does.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace fedge::learn {

// The function that a layer applies to each of its outputs.
enum class Curve { kNone, kRelu, kLeakyRelu, kGelu, kSilu, kSigmoid, kTanh };

// How the weights of dense layers and convolutions are drawn.
//   uniform  weights and biases uniform in +-1/sqrt(inputs): PyTorch's default
//   glorot   weights uniform in +-sqrt(6 / (inputs + outputs)), biases 0 (Glorot and Bengio, AISTATS 2010)
//   he       weights normal with variance 2 / inputs, biases 0 (He et al., ICCV 2015)
enum class Initialisation { kUniform, kGlorot, kHe };

struct LayerSpec {
  std::string kind;                 // in the table of learn/layers/kinds.h
  std::string name{};               // empty: the kind and a number
  std::vector<std::string> from{};  // the layers that it reads; empty: the one before it
  Curve activation = Curve::kNone;
  std::size_t units = 0;   // outputs of a point: of a sample, step or pixel; 0: as many as the data has
  std::size_t window = 0;  // of a kernel or a pooling, along each axis; factor of an upsampling
  std::size_t stride = 1;
  bool same = true;        // whether zeros around the input keep its height and width (divided by stride)
  std::size_t groups = 1;  // of channels
  bool bias = true;
  double rate = 0;        // dropout: fraction of zeros
  double slope = 0.01;    // leaky ReLU
  bool last = false;      // recurrent: the output is that of the last step alone
  bool linear = false;    // upsample: interpolates instead of repeating
  std::size_t first = 0;  // take: first channel
  std::size_t count = 0;  // take: number of channels
};

// The names of these values in a run file, in their order.
const std::vector<std::string>& curve_names();
const std::vector<std::string>& initialisation_names();

}  // namespace fedge::learn
