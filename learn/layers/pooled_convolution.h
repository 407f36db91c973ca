// PooledConvolution: a convolution with bias, ReLU and 2x2 max-pooling, over height x width x channels, one
// image at a time. Forward is a dense product. Backward is a sparse one: of each four pixels only the winner
// of the pooling has a gradient, and only if ReLU passed it, so that at most a quarter of the products
// remain. The weights' gradient is dense, too, if a kernel row is short (dense_weights()). Weights are [out,
// in, kernel, kernel] as in PyTorch. They are rearranged once a step, so that the weights for one row of the
// kernel at a pixel are contiguous.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/aligned_buffer.h"
#include "learn/models/layers.h"

namespace fedge::learn {

struct PooledConvolutionShape {
  std::size_t height = 0;  // of the input
  std::size_t width = 0;
  std::size_t in = 0;  // channels
  std::size_t out = 0;
  std::size_t kernel = 5;
  bool same = true;  // a border of zeros keeps height and width; the kernel is odd
  std::size_t border() const { return same ? kernel / 2 : 0; }
  // Before pooling; both even.
  std::size_t lines() const { return height + 2 * border() - kernel + 1; }
  std::size_t places() const { return width + 2 * border() - kernel + 1; }
  std::size_t input_size() const { return height * width * in; }
  std::size_t pooled() const { return lines() * places() / 4; }
  std::size_t output_size() const { return pooled() * out; }
  std::size_t run() const { return kernel * in; }  // floats of one kernel row
  std::size_t patch() const { return kernel * run(); }
  // Whether a kernel row fills so little of a vector that the weights' gradient is a dense product.
  bool dense_weights(const Kernels& kernels) const { return 2 * run() <= kernels.lanes; }
  // Size of an image's line, and of an image, with its border of zeros.
  std::size_t padded_line() const { return (width + 2 * border()) * in; }
  std::size_t padded_size() const { return (height + 2 * border()) * padded_line(); }
  // Length of a kernel row in the backward scratch, rounded up because add_terms writes beyond its end.
  std::size_t wide_run() const { return (run() + kRunRounding - 1) / kRunRounding * kRunRounding; }
};

// Scratch of one thread for one convolution.
struct PooledConvolutionSpace {
  PooledConvolutionSpace(const PooledConvolutionShape& shape, const Kernels& kernels, std::size_t max_batch);

  std::vector<std::uint32_t> starts;     // of a patch's kernel rows
  AlignedBuffer<float> ordered_weights;  // out x patch
  AlignedBuffer<float> packed_weights;
  AlignedBuffer<float> wide_weights;     // out x kernel x wide_run
  AlignedBuffer<float> weight_gradient;  // out x kernel x wide_run
  AlignedBuffer<float> packed_gradient;  // like packed_weights
  AlignedBuffer<float> bias_gradient;    // out
  AlignedBuffer<float> padded;           // one image
  AlignedBuffer<float> padded_gradient;  // one image
  AlignedBuffer<float> unpooled;         // one image: lines x places x packed_size(out)
  std::vector<std::int32_t> winners;     // batch x output_size(): index of the largest of the four
  // The gradient of one image before pooling, stored twice: for each channel its nonzero pixels, and for each
  // pixel its nonzero channels.
  std::vector<Term> pixel_terms;      // out x pooled()
  std::vector<TermRow> channel_rows;  // out
  std::vector<Term> channel_terms;    // pooled() x 4 x out, and `out` that do not count
  std::vector<TermRow> pixel_rows;    // lines * places
};

class PooledConvolution {
 public:
  PooledConvolution(const PooledConvolutionShape& shape, const Layer& layer) : shape_(shape), layer_(layer) {}

  const PooledConvolutionShape& shape() const { return shape_; }
  const Layer& layer() const { return layer_; }
  // x has `rows` images, y as many outputs.
  void forward(const Kernels& kernels, std::span<const float> parameters, std::size_t rows, const float* x,
               float* y, PooledConvolutionSpace& space) const;
  // y: the outputs of forward() for pass.x; pass.dy is the gradient with respect to them. Writes only the
  // trained rows of the destination. Returns the number of multiply-adds.
  Products backward(const Kernels& kernels, const LayerRows& trained, const LayerPass& pass, const float* y,
                    const Destination& destination, PooledConvolutionSpace& space) const;

 private:
  void pack_weights(const Kernels& kernels, std::span<const float> parameters,
                    PooledConvolutionSpace& space) const;
  Patches patches(const PooledConvolutionSpace& space) const;
  void add_border(const float* image, float* padded) const;
  void remove_border(const float* padded, float* image) const;
  struct Image;  // the arrays of one image that backward reads
  std::uint64_t add_weight_gradients(const Kernels& kernels, const LayerRows& trained, const Image& image,
                                     PooledConvolutionSpace& space) const;
  std::uint64_t add_dense_gradients(const Kernels& kernels, const LayerRows& trained, const Image& image,
                                    PooledConvolutionSpace& space) const;
  void unpack_gradient(const Kernels& kernels, const LayerRows& trained, PooledConvolutionSpace& space) const;
  void list_channel_rows(const std::vector<Range>& channels, const Image& image,
                         PooledConvolutionSpace& space) const;
  void list_pixel_rows(const Image& image, PooledConvolutionSpace& space) const;
  void clear_gradients(const LayerRows& trained, PooledConvolutionSpace& space) const;
  void add_gradients(const LayerRows& trained, const Destination& destination,
                     const PooledConvolutionSpace& space) const;

  PooledConvolutionShape shape_;
  Layer layer_;
};

}  // namespace fedge::learn
