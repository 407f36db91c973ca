#include "learn/models/dense.h"

#include <algorithm>

#include "core/aligned_buffer.h"
#include "core/check.h"
#include "learn/models/layers.h"
#include "learn/models/loss.h"

namespace fedge::learn {
namespace {

class DenseWorkspace final : public Workspace {
 public:
  DenseWorkspace(const std::vector<Layer>& layers, std::size_t batch) : max_batch(batch) {
    for (const Layer& layer : layers) {
      outputs.emplace_back(batch * layer.out);
      gradients.emplace_back(batch * layer.out);
    }
  }

  std::size_t max_batch;
  std::vector<AlignedBuffer<float>> outputs;    // of each layer, after ReLU; of the last: logits
  std::vector<AlignedBuffer<float>> gradients;  // with respect to the same
};

class DenseModel final : public LayeredModel {
 public:
  explicit DenseModel(const std::vector<std::size_t>& widths) {
    auto layout = std::make_shared<ParameterLayout>();
    for (std::size_t i = 0; i + 1 < widths.size(); ++i)
      layers_.push_back(add_layer(*layout, "dense" + std::to_string(i + 1), {widths[i + 1], widths[i]},
                                  static_cast<std::uint32_t>(i)));
    layout_ = std::move(layout);
    input_size_ = widths.front();
    classes_ = widths.back();
  }

  void initialise(std::span<float> parameters, const Rng& rng) const override {
    for (std::size_t i = 0; i < layers_.size(); ++i)
      initialise_layer(layers_[i], parameters, rng.fork("init", i));
  }

  std::unique_ptr<Workspace> make_workspace(std::size_t max_batch) const override {
    auto workspace = std::make_unique<DenseWorkspace>(layers_, max_batch);
    workspace->trained = trained_rows(*layout_, Coverage::all(layout_->size()));
    return workspace;
  }

  void forward(std::span<const float> parameters, std::span<const float> inputs, std::span<float> logits,
               Workspace& workspace) const override {
    auto& space = static_cast<DenseWorkspace&>(workspace);
    const std::size_t rows = inputs.size() / input_size_;
    run_forward(parameters, inputs.data(), rows, space);
    std::copy_n(space.outputs.back().data(), rows * classes_, logits.data());
  }

 private:
  void run_forward(std::span<const float> parameters, const float* inputs, std::size_t rows,
                   DenseWorkspace& space) const {
    FEDGE_CHECK(rows <= space.max_batch, "the workspace was made for smaller batches");
    const float* x = inputs;
    for (std::size_t i = 0; i < layers_.size(); ++i) {
      float* y = space.outputs[i].data();
      layer_forward(kernels(), layers_[i], parameters, rows, x, y);
      if (i + 1 < layers_.size()) kernels().relu(y, rows * layers_[i].out);
      x = y;
    }
  }

  BatchLoss backpropagate(std::span<const float> parameters, const Batch& batch, float scale,
                          const Destination& destination, Workspace& workspace) const override {
    auto& space = static_cast<DenseWorkspace&>(workspace);
    const std::size_t rows = batch.labels.size();
    run_forward(parameters, batch.inputs.data(), rows, space);
    const auto logits = space.outputs.back().span().first(rows * classes_);
    const BatchLoss loss = cross_entropy(kernels(), logits, batch.labels, classes_, scale);
    const std::size_t lowest = space.trained.lowest();
    const float* dy = logits.data();
    for (std::size_t i = layers_.size(); i-- > lowest;) {
      const float* x = i > 0 ? space.outputs[i - 1].data() : batch.inputs.data();
      float* dx = i > lowest ? space.gradients[i - 1].data() : nullptr;
      space.products += layer_backward(kernels(), layers_[i], space.trained.layers[i],
                                       {rows, parameters.data() + layers_[i].weight, x, dy, dx}, destination);
      if (dx != nullptr) kernels().relu_backward(x, dx, rows * layers_[i].in);
      dy = dx;
    }
    return loss;
  }

  std::vector<Layer> layers_;
};

}  // namespace

std::unique_ptr<Model> make_dense_model(const std::vector<std::size_t>& widths) {
  return std::make_unique<DenseModel>(widths);
}

}  // namespace fedge::learn
