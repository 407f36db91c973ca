// One 5x5 "same" convolution with bias, ReLU and 2x2 max-pooling, over height x width x channels.
// Computed as a dense layer over patches, a few image rows at a time so that patches stay in the
// cache. Weights are turned (inputs x outputs) once a step: products then run along the outputs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/aligned_buffer.h"
#include "learn/models/layers.h"

namespace fedge::learn {

struct ConvolutionShape {
  std::size_t height = 0;  // of input and output before pooling; even
  std::size_t width = 0;
  std::size_t in = 0;  // channels
  std::size_t out = 0;
  std::size_t input_size() const { return height * width * in; }
  std::size_t output_size() const { return height * width * out / 4; }  // after pooling
  std::size_t patch() const { return kKernel * kKernel * in; }
  static constexpr std::size_t kKernel = 5;
};

// Scratch of one thread for one convolution.
struct ConvolutionSpace {
  ConvolutionSpace(const ConvolutionShape& shape, std::size_t max_batch);

  AlignedBuffer<float> turned_weights;   // patch x out
  AlignedBuffer<float> turned_gradient;  // patch x out
  AlignedBuffer<float> bias_gradient;    // out
  AlignedBuffer<float> patches;          // a block's rows x patch
  AlignedBuffer<float> patch_gradients;  // the same
  AlignedBuffer<float> unpooled;         // one image: height x width x out
  AlignedBuffer<float> output;           // batch x output_size()
  std::vector<std::uint8_t> winners;     // batch x output_size(): which of the four was largest
};

class Convolution {
 public:
  Convolution(const ConvolutionShape& shape, const Layer& layer) : shape_(shape), layer_(layer) {}

  const ConvolutionShape& shape() const { return shape_; }
  const Layer& layer() const { return layer_; }
  // x: rows images; the result is in space.output.
  void forward(const Kernels& kernels, std::span<const float> parameters, std::size_t rows, const float* x,
               ConvolutionSpace& space) const;
  // dy: with respect to space.output. dx (with respect to x) may be null.
  void backward(const Kernels& kernels, const float* weights, std::size_t rows, const float* x,
                const float* dy, float* dx, const Destination& destination, ConvolutionSpace& space) const;

 private:
  // Image rows taken together.
  std::size_t block_rows() const;
  void gather_patches(const float* image, std::size_t first, std::size_t rows, float* patches) const;
  void scatter_patches(const float* patches, std::size_t first, std::size_t rows, float* image) const;
  void pool(const float* unpooled, float* output, std::uint8_t* winners) const;
  void unpool(const float* output, const std::uint8_t* winners, const float* dy, float* unpooled) const;

  ConvolutionShape shape_;
  Layer layer_;
};

}  // namespace fedge::learn
