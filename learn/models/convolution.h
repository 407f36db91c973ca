// One 5x5 "same" convolution with bias, ReLU and 2x2 max-pooling, over height x width x channels, one image
// at a time. Forward is a dense product. Backward is a sparse one: of each four pixels only the winner of the
// pooling has a gradient, and only if ReLU passed it, so that at most a quarter of the products remain.
// Weights are [out, in, 5, 5] as in PyTorch. They are rearranged once a step, so that the weights for one row
// of the kernel at a pixel are contiguous.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/aligned_buffer.h"
#include "learn/models/layers.h"

namespace fedge::learn {

struct ConvolutionShape {
  std::size_t height = 0;  // of the input, and of the output before pooling; even
  std::size_t width = 0;
  std::size_t in = 0;  // channels
  std::size_t out = 0;
  std::size_t input_size() const { return height * width * in; }
  std::size_t pooled() const { return height * width / 4; }
  std::size_t output_size() const { return pooled() * out; }
  std::size_t run() const { return kKernel * in; }  // floats of one kernel row
  std::size_t patch() const { return kKernel * run(); }
  // Size of an image's line, and of an image, with its border of zeros.
  std::size_t padded_line() const { return (width + kKernel - 1) * in; }
  std::size_t padded_size() const { return (height + kKernel - 1) * padded_line(); }
  // Length of a kernel row in the backward scratch, rounded up because add_terms writes beyond its end.
  std::size_t wide_run() const { return (run() + kRunRounding - 1) / kRunRounding * kRunRounding; }
  static constexpr std::size_t kKernel = 5;
};

// Scratch of one thread for one convolution.
struct ConvolutionSpace {
  ConvolutionSpace(const ConvolutionShape& shape, const Kernels& kernels, std::size_t max_batch);

  AlignedBuffer<float> packed_weights;   // panels x patch x panel
  AlignedBuffer<float> packed_bias;      // panels x panel
  AlignedBuffer<float> wide_weights;     // out x 5 x wide_run
  AlignedBuffer<float> weight_gradient;  // out x 5 x wide_run
  AlignedBuffer<float> bias_gradient;    // out
  AlignedBuffer<float> padded;           // one image
  AlignedBuffer<float> padded_gradient;  // one image
  AlignedBuffer<float> unpooled;         // one image: height x width x (panels * panel)
  AlignedBuffer<float> output;           // batch x output_size()
  std::vector<std::int32_t> winners;     // batch x output_size(): index of the largest of the four
  // The gradient of one image before pooling, stored twice: for each channel its nonzero pixels, and for each
  // pixel its nonzero channels.
  std::vector<Term> pixel_terms;      // out x pooled()
  std::vector<TermRow> channel_rows;  // out
  std::vector<Term> channel_terms;    // pooled() x out
  std::vector<TermRow> pixel_rows;    // height * width
};

class Convolution {
 public:
  Convolution(const ConvolutionShape& shape, const Layer& layer) : shape_(shape), layer_(layer) {}

  const ConvolutionShape& shape() const { return shape_; }
  const Layer& layer() const { return layer_; }
  // x has `rows` images; the result is written to space.output.
  void forward(const Kernels& kernels, std::span<const float> parameters, std::size_t rows, const float* x,
               ConvolutionSpace& space) const;
  // pass.dy is the gradient with respect to space.output. Writes only the trained rows of the destination.
  // Returns the number of multiply-adds.
  Products backward(const Kernels& kernels, const LayerRows& trained, const LayerPass& pass,
                    const Destination& destination, ConvolutionSpace& space) const;

 private:
  void pack_weights(std::size_t panel, std::span<const float> parameters, ConvolutionSpace& space) const;
  void add_border(const float* image, float* padded) const;
  void remove_border(const float* padded, float* image) const;
  struct Image;  // the arrays of one image that backward reads
  std::uint64_t add_weight_gradients(const Kernels& kernels, const LayerRows& trained, const Image& image,
                                     ConvolutionSpace& space) const;
  void list_channel_rows(const std::vector<Range>& channels, const Image& image,
                         ConvolutionSpace& space) const;
  void list_pixel_rows(const Image& image, ConvolutionSpace& space) const;
  void clear_gradients(const LayerRows& trained, ConvolutionSpace& space) const;
  void add_gradients(const LayerRows& trained, const Destination& destination,
                     const ConvolutionSpace& space) const;

  ConvolutionShape shape_;
  Layer layer_;
};

}  // namespace fedge::learn
