#include "learn/models/convolution.h"

#include <algorithm>
#include <cstring>

namespace fedge::learn {
namespace {

constexpr std::size_t kKernel = ConvolutionShape::kKernel;
constexpr std::size_t kReach = kKernel / 2;
// Pixels in a block: 56 patches of 800 floats are 180 kB, half of a usual L2 cache.
constexpr std::size_t kBlockPixels = 56;

// to[c][r] = from[r][c]
void transpose(const float* from, std::size_t rows, std::size_t columns, float* to) {
  constexpr std::size_t kTile = 16;
  for (std::size_t r0 = 0; r0 < rows; r0 += kTile)
    for (std::size_t c0 = 0; c0 < columns; c0 += kTile)
      for (std::size_t r = r0; r < std::min(r0 + kTile, rows); ++r)
        for (std::size_t c = c0; c < std::min(c0 + kTile, columns); ++c)
          to[c * rows + r] = from[r * columns + c];
}

// to[r][c] = keep * to[r][c] + from[c][r]
void add_transposed(const float* from, std::size_t rows, std::size_t columns, float keep, float* to) {
  constexpr std::size_t kTile = 16;
  for (std::size_t r0 = 0; r0 < rows; r0 += kTile)
    for (std::size_t c0 = 0; c0 < columns; c0 += kTile)
      for (std::size_t r = r0; r < std::min(r0 + kTile, rows); ++r)
        for (std::size_t c = c0; c < std::min(c0 + kTile, columns); ++c) {
          float& place = to[r * columns + c];
          place = (keep == 0.0F ? 0.0F : keep * place) + from[c * rows + r];
        }
}

}  // namespace

ConvolutionSpace::ConvolutionSpace(const ConvolutionShape& shape, std::size_t max_batch)
    : turned_weights(shape.patch() * shape.out),
      turned_gradient(shape.patch() * shape.out),
      bias_gradient(shape.out),
      patches((kBlockPixels + shape.width) * shape.patch()),
      patch_gradients((kBlockPixels + shape.width) * shape.patch()),
      unpooled(shape.height * shape.width * shape.out),
      output(max_batch * shape.output_size()),
      winners(max_batch * shape.output_size()) {}

std::size_t Convolution::block_rows() const { return std::max<std::size_t>(1, kBlockPixels / shape_.width); }

void Convolution::gather_patches(const float* image, std::size_t first, std::size_t rows,
                                 float* patches) const {
  const std::size_t line = kKernel * shape_.in;  // floats of one kernel row
  std::memset(patches, 0, rows * shape_.width * shape_.patch() * sizeof(float));
  for (std::size_t y = first; y < first + rows; ++y) {
    for (std::size_t x = 0; x < shape_.width; ++x, patches += shape_.patch()) {
      // The part of a kernel row that lies inside the image is one run of floats.
      const std::size_t skip = x < kReach ? kReach - x : 0;
      const std::size_t over = x + kReach >= shape_.width ? x + kReach + 1 - shape_.width : 0;
      const std::size_t run = line - (skip + over) * shape_.in;
      for (std::size_t k = 0; k < kKernel; ++k) {
        if (y + k < kReach || y + k >= shape_.height + kReach) continue;
        const float* from = image + ((y + k - kReach) * shape_.width + x + skip - kReach) * shape_.in;
        std::memcpy(patches + k * line + skip * shape_.in, from, run * sizeof(float));
      }
    }
  }
}

void Convolution::scatter_patches(const float* patches, std::size_t first, std::size_t rows,
                                  float* image) const {
  const std::size_t line = kKernel * shape_.in;
  for (std::size_t y = first; y < first + rows; ++y) {
    for (std::size_t x = 0; x < shape_.width; ++x, patches += shape_.patch()) {
      const std::size_t skip = x < kReach ? kReach - x : 0;
      const std::size_t over = x + kReach >= shape_.width ? x + kReach + 1 - shape_.width : 0;
      const std::size_t run = line - (skip + over) * shape_.in;
      for (std::size_t k = 0; k < kKernel; ++k) {
        if (y + k < kReach || y + k >= shape_.height + kReach) continue;
        float* to = image + ((y + k - kReach) * shape_.width + x + skip - kReach) * shape_.in;
        const float* from = patches + k * line + skip * shape_.in;
        for (std::size_t i = 0; i < run; ++i) to[i] += from[i];
      }
    }
  }
}

void Convolution::pool(const float* unpooled, float* output, std::uint8_t* winners) const {
  const std::size_t line = shape_.width * shape_.out;
  for (std::size_t y = 0; y < shape_.height; y += 2) {
    for (std::size_t x = 0; x < shape_.width; x += 2, output += shape_.out, winners += shape_.out) {
      const float* corner = unpooled + y * line + x * shape_.out;
      const float* four[4] = {corner, corner + shape_.out, corner + line, corner + line + shape_.out};
      for (std::size_t c = 0; c < shape_.out; ++c) {
        float largest = four[0][c];
        std::uint8_t winner = 0;
        for (std::uint8_t i = 1; i < 4; ++i) {
          winner = four[i][c] > largest ? i : winner;
          largest = four[i][c] > largest ? four[i][c] : largest;
        }
        output[c] = largest > 0.0F ? largest : 0.0F;
        winners[c] = winner;
      }
    }
  }
}

void Convolution::unpool(const float* output, const std::uint8_t* winners, const float* dy,
                         float* unpooled) const {
  const std::size_t line = shape_.width * shape_.out;
  for (std::size_t y = 0; y < shape_.height; y += 2) {
    for (std::size_t x = 0; x < shape_.width; x += 2) {
      float* corner = unpooled + y * line + x * shape_.out;
      float* four[4] = {corner, corner + shape_.out, corner + line, corner + line + shape_.out};
      for (std::size_t c = 0; c < shape_.out; ++c) {
        const float gradient = output[c] > 0.0F ? dy[c] : 0.0F;
        for (std::uint8_t i = 0; i < 4; ++i) four[i][c] = winners[c] == i ? gradient : 0.0F;
      }
      output += shape_.out;
      winners += shape_.out;
      dy += shape_.out;
    }
  }
}

void Convolution::forward(const Kernels& kernels, std::span<const float> parameters, std::size_t rows,
                          const float* x, ConvolutionSpace& space) const {
  const float* bias = parameters.data() + layer_.bias;
  transpose(parameters.data() + layer_.weight, shape_.out, shape_.patch(), space.turned_weights.data());
  for (std::size_t image = 0; image < rows; ++image) {
    for (std::size_t y = 0; y < shape_.height; y += block_rows()) {
      const std::size_t block = std::min(block_rows(), shape_.height - y);
      gather_patches(x + image * shape_.input_size(), y, block, space.patches.data());
      float* out = space.unpooled.data() + y * shape_.width * shape_.out;
      kernels.dense_backward({block * shape_.width, shape_.out, shape_.patch()}, space.patches.data(),
                             space.turned_weights.data(), out);
      for (std::size_t pixel = 0; pixel < block * shape_.width; ++pixel)
        for (std::size_t c = 0; c < shape_.out; ++c) out[pixel * shape_.out + c] += bias[c];
    }
    pool(space.unpooled.data(), space.output.data() + image * shape_.output_size(),
         space.winners.data() + image * shape_.output_size());
  }
}

void Convolution::backward(const Kernels& kernels, const float* weights, std::size_t rows, const float* x,
                           const float* dy, float* dx, const Destination& destination,
                           ConvolutionSpace& space) const {
  if (dx != nullptr) std::memset(dx, 0, rows * shape_.input_size() * sizeof(float));
  // Gradients are gathered apart and added at the end: the weights are needed unchanged until then.
  float keep = 0.0F;
  for (std::size_t image = 0; image < rows; ++image) {
    const std::size_t at = image * shape_.output_size();
    unpool(space.output.data() + at, space.winners.data() + at, dy + at, space.unpooled.data());
    for (std::size_t y = 0; y < shape_.height; y += block_rows()) {
      const std::size_t block = std::min(block_rows(), shape_.height - y);
      const std::size_t pixels = block * shape_.width;
      const float* gradient = space.unpooled.data() + y * shape_.width * shape_.out;
      gather_patches(x + image * shape_.input_size(), y, block, space.patches.data());
      kernels.dense_update({pixels, shape_.out, shape_.patch()}, space.patches.data(), gradient, keep,
                           space.turned_gradient.data());
      kernels.bias_update({pixels, shape_.patch(), shape_.out}, gradient, keep, space.bias_gradient.data());
      keep = 1.0F;
      if (dx == nullptr) continue;
      kernels.dense_backward({pixels, shape_.patch(), shape_.out}, gradient, weights,
                             space.patch_gradients.data());
      scatter_patches(space.patch_gradients.data(), y, block, dx + image * shape_.input_size());
    }
  }
  add_transposed(space.turned_gradient.data(), shape_.out, shape_.patch(), destination.keep,
                 destination.values + layer_.weight);
  add_transposed(space.bias_gradient.data(), shape_.out, 1, destination.keep,
                 destination.values + layer_.bias);
}

}  // namespace fedge::learn
