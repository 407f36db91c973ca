#include "learn/models/convolution.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace fedge::learn {
namespace {

constexpr std::size_t kKernel = ConvolutionShape::kKernel;
constexpr std::size_t kReach = kKernel / 2;

// Calls use(weight, o, k, at) for each weight of these outputs, in order. The weight belongs to output o and
// to row k of the kernel, at position `at` of the row's run.
template <class Use>
void for_each_weight(const ConvolutionShape& shape, const Range& outputs, Use use) {
  std::size_t weight = outputs.begin * shape.patch();
  for (std::size_t o = outputs.begin; o < outputs.end; ++o)
    for (std::size_t c = 0; c < shape.in; ++c)
      for (std::size_t k = 0; k < kKernel; ++k)
        for (std::size_t column = 0; column < kKernel; ++column) use(weight++, o, k, column * shape.in + c);
}

std::size_t panels(const ConvolutionShape& shape, std::size_t panel) {
  return (shape.out + panel - 1) / panel;
}

}  // namespace

ConvolutionSpace::ConvolutionSpace(const ConvolutionShape& shape, const Kernels& kernels,
                                   std::size_t max_batch)
    : packed_weights(panels(shape, kernels.panel) * kernels.panel * shape.patch()),
      packed_bias(panels(shape, kernels.panel) * kernels.panel),
      wide_weights(shape.out * kKernel * shape.wide_run()),
      weight_gradient(shape.out * kKernel * shape.wide_run()),
      bias_gradient(shape.out),
      padded(shape.padded_size() + kRunRounding),
      padded_gradient(shape.padded_size() + kRunRounding),
      unpooled(shape.height * shape.width * packed_bias.size()),
      output(max_batch * shape.output_size()),
      winners(max_batch * shape.output_size()),
      pixel_terms(shape.output_size()),
      channel_rows(shape.out),
      channel_terms(shape.output_size()),
      pixel_rows(shape.height * shape.width) {}

void Convolution::pack_weights(std::size_t panel, std::span<const float> parameters,
                               ConvolutionSpace& space) const {
  const float* weights = parameters.data() + layer_.weight;
  float* packed = space.packed_weights.data();
  for_each_weight(shape_, {0, shape_.out},
                  [&](std::size_t weight, std::size_t o, std::size_t k, std::size_t at) {
                    packed[o / panel * panel * shape_.patch() + (k * shape_.run() + at) * panel + o % panel] =
                        weights[weight];
                  });
  std::copy_n(parameters.data() + layer_.bias, shape_.out, space.packed_bias.data());
}

void Convolution::add_border(const float* image, float* padded) const {
  const std::size_t line = shape_.width * shape_.in;
  for (std::size_t y = 0; y < shape_.height; ++y)
    std::memcpy(padded + (y + kReach) * shape_.padded_line() + kReach * shape_.in, image + y * line,
                line * sizeof(float));
}

void Convolution::remove_border(const float* padded, float* image) const {
  const std::size_t line = shape_.width * shape_.in;
  for (std::size_t y = 0; y < shape_.height; ++y)
    std::memcpy(image + y * line, padded + (y + kReach) * shape_.padded_line() + kReach * shape_.in,
                line * sizeof(float));
}

void Convolution::forward(const Kernels& kernels, std::span<const float> parameters, std::size_t rows,
                          const float* x, ConvolutionSpace& space) const {
  pack_weights(kernels.panel, parameters, space);
  const std::size_t count = panels(shape_, kernels.panel);
  for (std::size_t image = 0; image < rows; ++image) {
    add_border(x + image * shape_.input_size(), space.padded.data());
    kernels.convolve({shape_.height, shape_.width, shape_.in, count}, space.padded.data(),
                     space.packed_weights.data(), space.packed_bias.data(), space.unpooled.data());
    const std::size_t at = image * shape_.output_size();
    kernels.pool({shape_.height, shape_.width, shape_.out, count * kernels.panel}, space.unpooled.data(),
                 space.output.data() + at, space.winners.data() + at);
  }
}

struct Convolution::Image {
  const float* x;
  const float* output;
  const std::int32_t* winners;
  const float* dy;
};

// Lists for each of these channels the pixels with a nonzero gradient, as offsets in the padded image.
void Convolution::list_channel_rows(const std::vector<Range>& channels, const Image& image,
                                    ConvolutionSpace& space) const {
  const auto [pixels, output, winners, dy] = image;
  for (const Range& range : channels)
    for (std::size_t c = range.begin; c < range.end; ++c)
      space.channel_rows[c] = {space.pixel_terms.data() + c * shape_.pooled(), 0,
                               static_cast<std::uint32_t>(c * kKernel * shape_.wide_run())};
  std::size_t at = 0;
  for (std::size_t y = 0; y < shape_.height; y += 2) {
    for (std::size_t x = 0; x < shape_.width; x += 2, at += shape_.out) {
      const std::size_t corner = y * shape_.padded_line() + x * shape_.in;
      const std::array<std::uint32_t, 4> places = {
          static_cast<std::uint32_t>(corner), static_cast<std::uint32_t>(corner + shape_.in),
          static_cast<std::uint32_t>(corner + shape_.padded_line()),
          static_cast<std::uint32_t>(corner + shape_.padded_line() + shape_.in)};
      for (const Range& range : channels) {
        Term* terms = space.pixel_terms.data() + range.begin * shape_.pooled();
        for (std::size_t c = range.begin; c < range.end; ++c, terms += shape_.pooled()) {
          // Always written, but kept only if the gradient is nonzero: this avoids a branch.
          std::uint32_t& count = space.channel_rows[c].count;
          terms[count] = {places[static_cast<std::size_t>(winners[at + c])], dy[at + c]};
          count += output[at + c] > 0.0F ? 1 : 0;
        }
      }
    }
  }
}

// Lists for each pixel the channels with a nonzero gradient there, as offsets in the wide weights.
void Convolution::list_pixel_rows(const Image& image, ConvolutionSpace& space) const {
  auto [pixels, output, winners, dy] = image;
  Term* terms = space.channel_terms.data();
  TermRow* row = space.pixel_rows.data();
  const std::uint32_t step = static_cast<std::uint32_t>(kKernel * shape_.wide_run());
  for (std::size_t y = 0; y < shape_.height; y += 2) {
    for (std::size_t x = 0; x < shape_.width; x += 2) {
      const std::size_t corner = y * shape_.padded_line() + x * shape_.in;
      std::array<std::uint32_t, 5> counts{};
      for (std::size_t c = 0; c < shape_.out; ++c)
        ++counts[output[c] > 0.0F ? static_cast<std::size_t>(winners[c]) : 4];
      std::array<Term*, 5> ends{};
      for (std::size_t i = 0; i < 5; ++i) {
        ends[i] = terms;
        if (i < 4)
          *row++ = {terms, counts[i],
                    static_cast<std::uint32_t>(corner + i / 2 * shape_.padded_line() + i % 2 * shape_.in)};
        terms += counts[i];
      }
      std::uint32_t place = 0;
      for (std::size_t c = 0; c < shape_.out; ++c, place += step)
        *ends[output[c] > 0.0F ? static_cast<std::size_t>(winners[c]) : 4]++ = {place, dy[c]};
      output += shape_.out;
      winners += shape_.out;
      dy += shape_.out;
    }
  }
}

// Gradients are summed in separate buffers: the destination may be the weights, which must not change until
// the end.
void Convolution::clear_gradients(const LayerRows& trained, ConvolutionSpace& space) const {
  const std::size_t row = kKernel * shape_.wide_run();
  for (const Range& outputs : trained.weights)
    std::memset(space.weight_gradient.data() + outputs.begin * row, 0, outputs.size() * row * sizeof(float));
  std::memset(space.bias_gradient.data(), 0, space.bias_gradient.size() * sizeof(float));
}

std::uint64_t Convolution::add_weight_gradients(const Kernels& kernels, const LayerRows& trained,
                                                const Image& image, ConvolutionSpace& space) const {
  add_border(image.x, space.padded.data());
  list_channel_rows(trained.either, image, space);
  for (const Range& outputs : trained.biases)
    for (std::size_t c = outputs.begin; c < outputs.end; ++c) {
      const TermRow& row = space.channel_rows[c];
      for (std::uint32_t i = 0; i < row.count; ++i) space.bias_gradient.data()[c] += row.terms[i].factor;
    }
  std::uint64_t products = 0;
  for (const Range& outputs : trained.weights) {
    const TermRows rows{space.channel_rows.data() + outputs.begin, outputs.size()};
    for (std::size_t k = 0; k < kKernel; ++k)
      kernels.add_terms(rows, space.padded.data() + k * shape_.padded_line(), shape_.run(),
                        space.weight_gradient.data() + k * shape_.wide_run());
    for (std::size_t c = 0; c < rows.count; ++c) products += rows.rows[c].count * shape_.patch();
  }
  return products;
}

Products Convolution::backward(const Kernels& kernels, const LayerRows& trained, const LayerPass& pass,
                               const Destination& destination, ConvolutionSpace& space) const {
  const std::size_t wide = shape_.wide_run();
  clear_gradients(trained, space);
  if (pass.dx != nullptr)
    for_each_weight(shape_, {0, shape_.out},
                    [&](std::size_t weight, std::size_t o, std::size_t k, std::size_t at) {
                      space.wide_weights.data()[(o * kKernel + k) * wide + at] = pass.weights[weight];
                    });
  Products products;
  for (std::size_t row = 0; row < pass.rows; ++row) {
    const std::size_t at = row * shape_.output_size();
    const Image image{pass.x + row * shape_.input_size(), space.output.data() + at, space.winners.data() + at,
                      pass.dy + at};
    if (!trained.either.empty()) products.weights += add_weight_gradients(kernels, trained, image, space);
    if (pass.dx == nullptr) continue;
    list_pixel_rows(image, space);
    for (const TermRow& pixel : space.pixel_rows) products.inputs += pixel.count * shape_.patch();
    std::memset(space.padded_gradient.data(), 0, space.padded_gradient.size() * sizeof(float));
    for (std::size_t k = 0; k < kKernel; ++k)
      kernels.add_terms({space.pixel_rows.data(), space.pixel_rows.size()},
                        space.wide_weights.data() + k * wide, shape_.run(),
                        space.padded_gradient.data() + k * shape_.padded_line());
    remove_border(space.padded_gradient.data(), pass.dx + row * shape_.input_size());
  }
  add_gradients(trained, destination, space);
  return products;
}

void Convolution::add_gradients(const LayerRows& trained, const Destination& destination,
                                const ConvolutionSpace& space) const {
  const float keep = destination.keep;
  const auto add = [keep](float& value, float gradient) {
    value = keep == 0.0F ? gradient : keep * value + gradient;
  };
  float* weights = destination.values + layer_.weight;
  for (const Range& outputs : trained.weights)
    for_each_weight(shape_, outputs, [&](std::size_t weight, std::size_t o, std::size_t k, std::size_t at) {
      add(weights[weight], space.weight_gradient.data()[(o * kKernel + k) * shape_.wide_run() + at]);
    });
  float* bias = destination.values + layer_.bias;
  for (const Range& outputs : trained.biases)
    for (std::size_t o = outputs.begin; o < outputs.end; ++o) add(bias[o], space.bias_gradient.data()[o]);
}

}  // namespace fedge::learn
