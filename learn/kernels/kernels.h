// Kernels: the inner loops of training, compiled once for each instruction set and chosen at run time
// by what the processor can do. Plain pointers, row-major float32, no allocation, no threads.
// One instruction set gives the same bits on every machine and for every call; different ones may
// round differently. A convolution is a dense layer over patches, so these few serve every model.
#pragma once

#include <cstddef>
#include <vector>

namespace fedge::learn {

// Shapes of a dense layer over a batch: x is rows x in, w is out x in, y is rows x out.
struct DenseShape {
  std::size_t rows = 0;
  std::size_t in = 0;
  std::size_t out = 0;
};

struct Kernels {
  const char* name;  // "portable", "x86-64-v3" ...

  // y = x w^T + bias.
  void (*dense_forward)(const DenseShape& shape, const float* x, const float* w, const float* bias, float* y);
  // dx = dy w.
  void (*dense_backward)(const DenseShape& shape, const float* dy, const float* w, float* dx);
  // w = keep * w + dy^T x; with keep = 0, w is written and never read. A gradient has keep = 0; an SGD
  // step keep = 1 and dy scaled by minus the learning rate.
  void (*dense_update)(const DenseShape& shape, const float* dy, const float* x, float keep, float* w);
  // bias = keep * bias + column sums of dy (rows x out).
  void (*bias_update)(const DenseShape& shape, const float* dy, float keep, float* bias);
  // y = max(y, 0).
  void (*relu)(float* y, std::size_t count);
  // dy = 0 where y <= 0: y is the layer's output after relu.
  void (*relu_backward)(const float* y, float* dy, std::size_t count);
  // probabilities = exp(logits - row maximum), normalised; rows x classes, may be in place.
  void (*softmax)(const float* logits, std::size_t rows, std::size_t classes, float* probabilities);
  // y += a * x.
  void (*axpy)(float a, const float* x, float* y, std::size_t count);
};

// The best this processor can run; chosen once, at first use.
const Kernels& kernels();
// All that this processor can run, the portable ones first: for tests that try each.
std::vector<const Kernels*> supported_kernels();

}  // namespace fedge::learn
