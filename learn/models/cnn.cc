#include "learn/models/cnn.h"

#include <algorithm>

#include "core/check.h"
#include "learn/models/convolution.h"
#include "learn/models/loss.h"

namespace fedge::learn {
namespace {

// Transposes each of `count` matrices of rows x columns.
void transpose(const float* from, std::size_t count, std::size_t rows, std::size_t columns, float* to) {
  for (std::size_t matrix = 0; matrix < count; ++matrix, from += rows * columns, to += rows * columns)
    for (std::size_t r = 0; r < rows; ++r)
      for (std::size_t c = 0; c < columns; ++c) to[c * rows + r] = from[r * columns + c];
}

class CnnWorkspace final : public Workspace {
 public:
  CnnWorkspace(const ConvolutionShape& first, const ConvolutionShape& second, const CnnShape& shape,
               std::size_t batch)
      : max_batch(batch),
        conv1(first, kernels(), batch),
        conv2(second, kernels(), batch),
        conv1_gradient(batch * first.output_size()),
        conv2_gradient(batch * second.output_size()),
        flat(batch * second.output_size()),
        flat_gradient(batch * second.output_size()),
        dense(batch * shape.dense),
        dense_gradient(batch * shape.dense),
        logits(batch * shape.points * shape.classes) {}

  std::size_t max_batch;
  ConvolutionSpace conv1;
  ConvolutionSpace conv2;
  AlignedBuffer<float> conv1_gradient;
  AlignedBuffer<float> conv2_gradient;
  AlignedBuffer<float> flat;  // the output of conv2, channels first
  AlignedBuffer<float> flat_gradient;
  AlignedBuffer<float> dense;
  AlignedBuffer<float> dense_gradient;
  AlignedBuffer<float> logits;
};

class Cnn final : public LayeredModel {
 public:
  explicit Cnn(const CnnShape& shape)
      : shape_(shape),
        layout_being_built_(std::make_shared<ParameterLayout>()),
        conv1_(
            {shape.input.height, shape.input.width, shape.input.channels, shape.channels1},
            add_layer(*layout_being_built_, "conv1", {shape.channels1, shape.input.channels, 5, 5}, kConv1)),
        conv2_({shape.input.height / 2, shape.input.width / 2, shape.channels1, shape.channels2},
               add_layer(*layout_being_built_, "conv2", {shape.channels2, shape.channels1, 5, 5}, kConv2)),
        dense_(
            add_layer(*layout_being_built_, "dense1", {shape.dense, conv2_.shape().output_size()}, kDense)),
        output_(
            add_layer(*layout_being_built_, "dense2", {shape.points * shape.classes, shape.dense}, kOutput)) {
    layout_ = std::move(layout_being_built_);
    input_size_ = shape.input.size();
    classes_ = shape.classes;
  }

  std::size_t outputs_per_sample() const override { return shape_.points; }

  void initialise(std::span<float> parameters, const Rng& rng) const override {
    const Layer layers[] = {conv1_.layer(), conv2_.layer(), dense_, output_};
    for (std::size_t i = 0; i < std::size(layers); ++i)
      initialise_layer(layers[i], parameters, rng.fork("init", i));
  }

  std::unique_ptr<Workspace> make_workspace(std::size_t max_batch) const override {
    auto workspace = std::make_unique<CnnWorkspace>(conv1_.shape(), conv2_.shape(), shape_, max_batch);
    workspace->trained = trained_rows(*layout_, Coverage::all(layout_->size()));
    return workspace;
  }

  void forward(std::span<const float> parameters, const Batch& batch, std::span<float> logits,
               Workspace& workspace) const override {
    auto& space = static_cast<CnnWorkspace&>(workspace);
    const std::size_t rows = batch.inputs.size() / input_size_;
    run_forward(parameters, batch.inputs.data(), rows, space);
    std::copy_n(space.logits.data(), rows * shape_.points * classes_, logits.data());
  }

 private:
  void run_forward(std::span<const float> parameters, const float* inputs, std::size_t rows,
                   CnnWorkspace& space) const {
    FEDGE_CHECK(rows <= space.max_batch, "the workspace was made for smaller batches");
    conv1_.forward(kernels(), parameters, rows, inputs, space.conv1);
    conv2_.forward(kernels(), parameters, rows, space.conv1.output.data(), space.conv2);
    transpose(space.conv2.output.data(), rows, conv2_.shape().pooled(), conv2_.shape().out,
              space.flat.data());
    layer_forward(kernels(), dense_, parameters, rows, space.flat.data(), space.dense.data());
    kernels().relu(space.dense.data(), rows * dense_.out);
    layer_forward(kernels(), output_, parameters, rows, space.dense.data(), space.logits.data());
  }

  BatchLoss backpropagate(std::span<const float> parameters, const Batch& batch, float scale,
                          const Destination& destination, Workspace& workspace) const override {
    auto& s = static_cast<CnnWorkspace&>(workspace);
    const std::size_t rows = batch.inputs.size() / input_size_;
    run_forward(parameters, batch.inputs.data(), rows, s);
    const BatchLoss loss = sample_loss(kernels(), s.logits.span().first(rows * shape_.points * classes_),
                                       batch, classes_, scale);
    backward_dense(parameters.data(), rows, destination, s);
    backward_convolutions(parameters.data(), {batch.inputs.data(), rows}, destination, s);
    return loss;
  }

  // Propagates the logits' gradient down to conv2's output, or to the lowest trained layer.
  void backward_dense(const float* w, std::size_t rows, const Destination& destination,
                      CnnWorkspace& s) const {
    const std::size_t lowest = s.trained.lowest();
    if (lowest > kOutput) return;
    s.products += layer_backward(kernels(), output_, s.trained.layers[kOutput],
                                 {rows, w + output_.weight, s.dense.data(), s.logits.data(),
                                  lowest < kOutput ? s.dense_gradient.data() : nullptr},
                                 destination);
    if (lowest > kDense) return;
    kernels().relu_backward(s.dense.data(), s.dense_gradient.data(), rows * dense_.out);
    s.products += layer_backward(kernels(), dense_, s.trained.layers[kDense],
                                 {rows, w + dense_.weight, s.flat.data(), s.dense_gradient.data(),
                                  lowest < kDense ? s.flat_gradient.data() : nullptr},
                                 destination);
  }

  struct Images {
    const float* pixels;
    std::size_t rows;
  };
  void backward_convolutions(const float* w, const Images& images, const Destination& destination,
                             CnnWorkspace& s) const {
    const std::size_t lowest = s.trained.lowest();
    if (lowest > kConv2) return;
    transpose(s.flat_gradient.data(), images.rows, conv2_.shape().out, conv2_.shape().pooled(),
              s.conv2_gradient.data());
    s.products +=
        conv2_.backward(kernels(), s.trained.layers[kConv2],
                        {images.rows, w + conv2_.layer().weight, s.conv1.output.data(),
                         s.conv2_gradient.data(), lowest < kConv2 ? s.conv1_gradient.data() : nullptr},
                        destination, s.conv2);
    if (lowest > kConv1) return;
    s.products += conv1_.backward(
        kernels(), s.trained.layers[kConv1],
        {images.rows, w + conv1_.layer().weight, images.pixels, s.conv1_gradient.data(), nullptr},
        destination, s.conv1);
  }

  static constexpr std::size_t kConv1 = 0;  // the layers' numbers in the layout
  static constexpr std::size_t kConv2 = 1;
  static constexpr std::size_t kDense = 2;
  static constexpr std::size_t kOutput = 3;

  CnnShape shape_;
  std::shared_ptr<ParameterLayout> layout_being_built_;
  Convolution conv1_;
  Convolution conv2_;
  Layer dense_;
  Layer output_;
};

}  // namespace

std::unique_ptr<Model> make_cnn(const CnnShape& shape) { return std::make_unique<Cnn>(shape); }

}  // namespace fedge::learn
