#include "learn/layers/pooled_convolution.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "learn/layers/operations.h"

namespace fedge::learn {
namespace {

// Calls use(weight, o, k, at) for each weight of these outputs, in order. The weight belongs to output o and
// to row k of the kernel, at position `at` of the row's run.
template <class Use>
void for_each_weight(const PooledConvolutionShape& shape, const Range& outputs, Use use) {
  std::size_t weight = outputs.begin * shape.patch();
  for (std::size_t o = outputs.begin; o < outputs.end; ++o)
    for (std::size_t c = 0; c < shape.in; ++c)
      for (std::size_t k = 0; k < shape.kernel; ++k)
        for (std::size_t column = 0; column < shape.kernel; ++column)
          use(weight++, o, k, column * shape.in + c);
}

std::vector<std::uint32_t> line_starts(const PooledConvolutionShape& shape) {
  std::vector<std::uint32_t> starts;
  for (std::size_t k = 0; k < shape.kernel; ++k)
    starts.push_back(static_cast<std::uint32_t>(k * shape.padded_line()));
  return starts;
}

}  // namespace

PooledConvolutionSpace::PooledConvolutionSpace(const PooledConvolutionShape& shape, const Kernels& kernels,
                                               std::size_t max_batch)
    : starts(line_starts(shape)),
      ordered_weights(shape.out * shape.patch()),
      packed_weights(shape.patch() * kernels.packed_size(shape.out)),
      wide_weights(shape.out * shape.kernel * shape.wide_run()),
      weight_gradient(shape.out * shape.kernel * shape.wide_run()),
      packed_gradient(shape.dense_weights(kernels) ? packed_weights.size() : 0),
      bias_gradient(shape.out),
      padded(shape.padded_size() + kRunRounding),
      padded_gradient(shape.padded_size() + kRunRounding),
      unpooled(shape.lines() * shape.places() * kernels.packed_size(shape.out)),
      winners(max_batch * shape.output_size()),
      pixel_terms(shape.output_size()),
      channel_rows(shape.out),
      channel_terms(shape.output_size()),
      pixel_rows(shape.lines() * shape.places()) {}

void PooledConvolution::pack_weights(const Kernels& kernels, std::span<const float> parameters,
                                     PooledConvolutionSpace& space) const {
  const float* weights = parameters.data() + layer_.weight;
  float* ordered = space.ordered_weights.data();
  for_each_weight(shape_, {0, shape_.out},
                  [&](std::size_t weight, std::size_t o, std::size_t k, std::size_t at) {
                    ordered[o * shape_.patch() + k * shape_.run() + at] = weights[weight];
                  });
  kernels.pack_panels({ordered, 1, shape_.patch()}, shape_.patch(), shape_.out, space.packed_weights.data());
}

void PooledConvolution::add_border(const float* image, float* padded) const {
  const std::size_t line = shape_.width * shape_.in;
  for (std::size_t y = 0; y < shape_.height; ++y)
    std::memcpy(padded + (y + shape_.border()) * shape_.padded_line() + shape_.border() * shape_.in,
                image + y * line, line * sizeof(float));
}

void PooledConvolution::remove_border(const float* padded, float* image) const {
  const std::size_t line = shape_.width * shape_.in;
  for (std::size_t y = 0; y < shape_.height; ++y)
    std::memcpy(image + y * line,
                padded + (y + shape_.border()) * shape_.padded_line() + shape_.border() * shape_.in,
                line * sizeof(float));
}

void PooledConvolution::forward(const Kernels& kernels, std::span<const float> parameters, std::size_t rows,
                                const float* x, float* y, PooledConvolutionSpace& space) const {
  pack_weights(kernels, parameters, space);
  const std::size_t padded = kernels.packed_size(shape_.out);
  for (std::size_t image = 0; image < rows; ++image) {
    add_border(x + image * shape_.input_size(), space.padded.data());
    kernels.multiply_patches(patches(space), space.padded.data(), shape_.out, space.packed_weights.data(),
                             {space.unpooled.data(), padded, parameters.data() + layer_.bias, 0});
    const std::size_t at = image * shape_.output_size();
    kernels.pool({shape_.lines(), shape_.places(), shape_.out, padded}, space.unpooled.data(), y + at,
                 space.winners.data() + at);
  }
}

struct PooledConvolution::Image {
  const float* x;
  const float* output;
  const std::int32_t* winners;
  const float* dy;
};

// Lists for each of these channels the pixels with a nonzero gradient, as offsets in the padded image.
void PooledConvolution::list_channel_rows(const std::vector<Range>& channels, const Image& image,
                                          PooledConvolutionSpace& space) const {
  const auto [pixels, output, winners, dy] = image;
  for (const Range& range : channels)
    for (std::size_t c = range.begin; c < range.end; ++c)
      space.channel_rows[c] = {space.pixel_terms.data() + c * shape_.pooled(), 0,
                               static_cast<std::uint32_t>(c * shape_.kernel * shape_.wide_run())};
  std::size_t at = 0;
  for (std::size_t y = 0; y < shape_.lines(); y += 2) {
    for (std::size_t x = 0; x < shape_.places(); x += 2, at += shape_.out) {
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
void PooledConvolution::list_pixel_rows(const Image& image, PooledConvolutionSpace& space) const {
  auto [pixels, output, winners, dy] = image;
  Term* terms = space.channel_terms.data();
  TermRow* row = space.pixel_rows.data();
  const std::uint32_t step = static_cast<std::uint32_t>(shape_.kernel * shape_.wide_run());
  for (std::size_t y = 0; y < shape_.lines(); y += 2) {
    for (std::size_t x = 0; x < shape_.places(); x += 2) {
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

Patches PooledConvolution::patches(const PooledConvolutionSpace& space) const {
  return {.height = shape_.lines(),
          .width = shape_.places(),
          .line = shape_.padded_line(),
          .column = shape_.in,
          .starts = space.starts.data(),
          .runs = shape_.kernel,
          .length = shape_.run()};
}

// Gradients are summed in separate buffers: the destination may be the weights, which must not change until
// the end.
void PooledConvolution::clear_gradients(const LayerRows& trained, PooledConvolutionSpace& space) const {
  const std::size_t row = shape_.kernel * shape_.wide_run();
  for (const Range& outputs : trained.weights)
    std::memset(space.weight_gradient.data() + outputs.begin * row, 0, outputs.size() * row * sizeof(float));
  std::fill_n(space.packed_gradient.data(), space.packed_gradient.size(), 0.0F);
  std::memset(space.bias_gradient.data(), 0, space.bias_gradient.size() * sizeof(float));
}

std::uint64_t PooledConvolution::add_weight_gradients(const Kernels& kernels, const LayerRows& trained,
                                                      const Image& image,
                                                      PooledConvolutionSpace& space) const {
  add_border(image.x, space.padded.data());
  if (shape_.dense_weights(kernels)) return add_dense_gradients(kernels, trained, image, space);
  list_channel_rows(trained.either, image, space);
  for (const Range& outputs : trained.biases)
    for (std::size_t c = outputs.begin; c < outputs.end; ++c) {
      const TermRow& row = space.channel_rows[c];
      for (std::uint32_t i = 0; i < row.count; ++i) space.bias_gradient.data()[c] += row.terms[i].factor;
    }
  std::uint64_t products = 0;
  for (const Range& outputs : trained.weights) {
    const TermRows rows{space.channel_rows.data() + outputs.begin, outputs.size()};
    for (std::size_t k = 0; k < shape_.kernel; ++k)
      kernels.add_terms(rows, space.padded.data() + k * shape_.padded_line(), shape_.run(),
                        space.weight_gradient.data() + k * shape_.wide_run());
    for (std::size_t c = 0; c < rows.count; ++c) products += rows.rows[c].count * shape_.patch();
  }
  return products;
}

// The sparse sums would leave most lanes of a vector unused: the gradient of all pixels is written out
// instead.
std::uint64_t PooledConvolution::add_dense_gradients(const Kernels& kernels, const LayerRows& trained,
                                                     const Image& image,
                                                     PooledConvolutionSpace& space) const {
  const std::size_t padded = kernels.packed_size(shape_.out);
  kernels.unpool({shape_.lines(), shape_.places(), shape_.out, padded}, image.output, image.winners, image.dy,
                 space.unpooled.data());
  const std::size_t pixels = shape_.lines() * shape_.places();
  for (const Range& outputs : trained.biases)
    kernels.bias_update({pixels, 0, padded}, {outputs.begin, outputs.end}, space.unpooled.data(), 1.0F,
                        space.bias_gradient.data());
  // Whole panels, whichever of their outputs are trained: an output's bits do not depend on the others.
  const std::size_t panel = 2 * kernels.lanes;
  std::uint64_t products = 0;
  std::size_t done = 0;
  for (const Range& outputs : trained.weights) {
    for (std::size_t first = std::max(done, outputs.begin / panel * panel); first < outputs.end;
         first += panel) {
      const std::size_t columns = std::min(panel, shape_.out - first);
      kernels.add_patch_gradient(patches(space), space.padded.data(), columns, space.unpooled.data() + first,
                                 padded, space.packed_gradient.data() + first * shape_.patch());
      done = first + panel;
    }
    products += outputs.size() * shape_.patch() * pixels;
  }
  return products;
}

// Takes the sums of the panels apart, as if they had been sparse.
void PooledConvolution::unpack_gradient(const Kernels& kernels, const LayerRows& trained,
                                        PooledConvolutionSpace& space) const {
  for (const Range& outputs : trained.weights)
    for_each_weight(shape_, outputs, [&](std::size_t, std::size_t o, std::size_t k, std::size_t at) {
      const std::size_t place = kernels.packed_place(shape_.patch(), shape_.out, k * shape_.run() + at, o);
      space.weight_gradient.data()[(o * shape_.kernel + k) * shape_.wide_run() + at] =
          space.packed_gradient.data()[place];
    });
}

Products PooledConvolution::backward(const Kernels& kernels, const LayerRows& trained, const LayerPass& pass,
                                     const float* y, const Destination& destination,
                                     PooledConvolutionSpace& space) const {
  const std::size_t wide = shape_.wide_run();
  clear_gradients(trained, space);
  if (pass.dx != nullptr)
    for_each_weight(shape_, {0, shape_.out},
                    [&](std::size_t weight, std::size_t o, std::size_t k, std::size_t at) {
                      space.wide_weights.data()[(o * shape_.kernel + k) * wide + at] = pass.weights[weight];
                    });
  Products products;
  for (std::size_t row = 0; row < pass.rows; ++row) {
    const std::size_t at = row * shape_.output_size();
    const Image image{pass.x + row * shape_.input_size(), y + at, space.winners.data() + at, pass.dy + at};
    if (!trained.either.empty()) products.weights += add_weight_gradients(kernels, trained, image, space);
    if (pass.dx == nullptr) continue;
    list_pixel_rows(image, space);
    for (const TermRow& pixel : space.pixel_rows) products.inputs += pixel.count * shape_.patch();
    std::memset(space.padded_gradient.data(), 0, space.padded_gradient.size() * sizeof(float));
    for (std::size_t k = 0; k < shape_.kernel; ++k)
      kernels.add_terms({space.pixel_rows.data(), space.pixel_rows.size()},
                        space.wide_weights.data() + k * wide, shape_.run(),
                        space.padded_gradient.data() + k * shape_.padded_line());
    remove_border(space.padded_gradient.data(), pass.dx + row * shape_.input_size());
  }
  if (shape_.dense_weights(kernels)) unpack_gradient(kernels, trained, space);
  add_gradients(trained, destination, space);
  return products;
}

void PooledConvolution::add_gradients(const LayerRows& trained, const Destination& destination,
                                      const PooledConvolutionSpace& space) const {
  const float keep = destination.keep;
  const auto add = [keep](float& value, float gradient) {
    value = keep == 0.0F ? gradient : keep * value + gradient;
  };
  float* weights = destination.values + layer_.weight;
  for (const Range& outputs : trained.weights)
    for_each_weight(shape_, outputs, [&](std::size_t weight, std::size_t o, std::size_t k, std::size_t at) {
      add(weights[weight], space.weight_gradient.data()[(o * shape_.kernel + k) * shape_.wide_run() + at]);
    });
  float* bias = destination.values + layer_.bias;
  for (const Range& outputs : trained.biases)
    for (std::size_t o = outputs.begin; o < outputs.end; ++o) add(bias[o], space.bias_gradient.data()[o]);
}

namespace {

struct PooledSpace final : OperationSpace {
  PooledSpace(const PooledConvolutionShape& shape, std::size_t batch) : space(shape, kernels(), batch) {}
  PooledConvolutionSpace space;
};

class PooledConvolutionLayer final : public Operation {
 public:
  PooledConvolutionLayer(const PooledConvolutionShape& shape, const Layer& layer)
      : convolution_(shape, layer) {
    shape_ = {LayerShape::Rank::kImage, shape.lines() / 2, shape.places() / 2, shape.out};
  }

  bool has_parameters() const override { return true; }
  bool reads_output() const override { return true; }
  double uses() const override {
    return static_cast<double>(convolution_.shape().lines() * convolution_.shape().places());
  }
  void initialise(std::span<float> parameters, Rng rng, Initialisation how) const override {
    const Layer& layer = convolution_.layer();
    const PooledConvolutionShape& shape = convolution_.shape();
    initialise_weights(parameters.subspan(layer.weight, layer.in * layer.out),
                       parameters.subspan(layer.bias, layer.out),
                       {layer.in, layer.out * shape.kernel * shape.kernel}, rng, how);
  }
  std::unique_ptr<OperationSpace> make_space(std::size_t max_batch) const override {
    return std::make_unique<PooledSpace>(convolution_.shape(), max_batch);
  }
  void forward(const ForwardPass& pass, OperationSpace* space) const override {
    convolution_.forward(pass.kernels, pass.parameters, pass.rows, pass.x[0], pass.y,
                         static_cast<PooledSpace*>(space)->space);
  }
  Products backward(const BackwardPass& pass, OperationSpace* space) const override {
    static const LayerRows kNone;
    return convolution_.backward(
        pass.kernels, pass.moves ? pass.trained.layers[pass.index] : kNone,
        {pass.rows, pass.parameters + convolution_.layer().weight, pass.x[0], pass.dy, pass.dx[0]}, pass.y,
        pass.destination, static_cast<PooledSpace*>(space)->space);
  }

 private:
  PooledConvolution convolution_;
};

PooledConvolutionShape pooled_shape(const LayerSpec& spec, const LayerShape& from, std::size_t units) {
  return {from.height, from.width, from.channels, units, spec.window, spec.same};
}

}  // namespace

bool pools_by_two(const LayerSpec& spec, const LayerShape& from) {
  if (spec.kind != "conv2d" || spec.activation != Curve::kRelu || spec.stride != 1 || spec.groups != 1 ||
      !spec.bias || (spec.same && spec.window % 2 == 0) || from.rank != LayerShape::Rank::kImage)
    return false;
  if (!spec.same && std::min(from.height, from.width) < spec.window) return false;
  const PooledConvolutionShape shape = pooled_shape(spec, from, 1);
  return shape.lines() % 2 == 0 && shape.places() % 2 == 0 && shape.pooled() > 0;
}

MadeOperation make_pooled_convolution(const LayerContext& context) {
  const PooledConvolutionShape shape = pooled_shape(context.spec, context.from[0], context.units());
  // Offsets in its scratch are 32-bit.
  const auto wide = static_cast<double>(shape.kernel * shape.wide_run()) * static_cast<double>(shape.out);
  const auto pixels = static_cast<double>(shape.padded_size() / shape.in);
  if (std::max(wide, pixels * static_cast<double>(std::max(shape.in, shape.out))) > 4294967295.0)
    return layer_error(context,
                       "an image, or the weights, would have more than 2^32 numbers; use fewer units");
  FEDGE_TRY(weight, add_tensor(context, "weight", {shape.out, shape.in, shape.kernel, shape.kernel}));
  FEDGE_TRY(bias, add_tensor(context, "bias", {shape.out}));
  return make_operation<PooledConvolutionLayer>(shape,
                                                Layer{weight.offset, bias.offset, shape.patch(), shape.out});
}

}  // namespace fedge::learn
