#include "learn/models/dense.h"

#include <algorithm>

#include "core/aligned_buffer.h"
#include "core/check.h"
#include "learn/models/adapters.h"
#include "learn/models/layers.h"
#include "learn/models/loss.h"

namespace fedge::learn {
namespace {

class DenseWorkspace final : public Workspace {
 public:
  DenseWorkspace(const std::vector<Layer>& layers, const Adapters& adapters, std::size_t batch)
      : max_batch(batch),
        adapter(adapters.make_space(batch)),
        scratch(adapters.empty() ? 0 : kProductScratch) {
    for (const Layer& layer : layers) {
      outputs.emplace_back(batch * layer.out);
      gradients.emplace_back(batch * layer.out);
    }
  }

  std::size_t max_batch;
  std::vector<AlignedBuffer<float>> outputs;    // output of each layer after ReLU; of the last layer: logits
  std::vector<AlignedBuffer<float>> gradients;  // gradients with respect to the outputs
  AdapterSpace adapter;
  AlignedBuffer<float> scratch;
};

class DenseModel final : public LayeredModel {
 public:
  DenseModel(const std::vector<std::size_t>& widths, std::size_t points, const AdapterSpec& adapter)
      : points_(points), adapters_(adapter.rank, adapter.scale) {
    auto layout = std::make_shared<ParameterLayout>();
    std::vector<std::string> adapted;
    for (std::size_t i = 0; i + 1 < widths.size(); ++i) {
      const std::string name = "dense" + std::to_string(i + 1);
      layers_.push_back(add_layer(*layout, name, {widths[i + 1], widths[i]}, static_cast<std::uint32_t>(i),
                                  adapter.rank == 0));
      if (adapter.targets.empty() || std::ranges::find(adapter.targets, name) != adapter.targets.end())
        adapted.push_back(name + ".weight");
    }
    if (adapter.rank > 0) adapters_.attach(adapted, *layout, static_cast<std::uint32_t>(layers_.size()));
    layout_ = std::move(layout);
    input_size_ = widths.front();
    classes_ = widths.back() / points;
  }

  std::size_t outputs_per_sample() const override { return points_; }

  const Adapters* adapters() const override { return adapters_.empty() ? nullptr : &adapters_; }

  void initialise(std::span<float> parameters, const Rng& rng) const override {
    for (std::size_t i = 0; i < layers_.size(); ++i)
      initialise_layer(layers_[i], parameters, rng.fork("init", i));
    if (!adapters_.empty()) adapters_.initialise(parameters, rng);
  }

  std::unique_ptr<Workspace> make_workspace(std::size_t max_batch) const override {
    auto workspace = std::make_unique<DenseWorkspace>(layers_, adapters_, max_batch);
    workspace->trained = trained_rows(*layout_, Coverage::all(layout_->size()));
    return workspace;
  }

  void forward(std::span<const float> parameters, const Batch& batch, std::span<float> logits,
               Workspace& workspace) const override {
    auto& space = static_cast<DenseWorkspace&>(workspace);
    const std::size_t rows = batch.inputs.size() / input_size_;
    run_forward(parameters, batch.inputs.data(), rows, space);
    std::copy_n(space.outputs.back().data(), rows * points_ * classes_, logits.data());
  }

 private:
  void run_forward(std::span<const float> parameters, const float* inputs, std::size_t rows,
                   DenseWorkspace& space) const {
    FEDGE_CHECK(rows <= space.max_batch, "the workspace was made for smaller batches");
    const float* x = inputs;
    if (!adapters_.empty()) {
      const float* merged =
          adapters_.merge(kernels(), parameters, space.ranks, space.adapter, space.scratch.data());
      parameters = {merged, adapters_.offset()};
    }
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
    const std::size_t rows = batch.inputs.size() / input_size_;
    run_forward(parameters, batch.inputs.data(), rows, space);
    const auto logits = space.outputs.back().span().first(rows * points_ * classes_);
    const BatchLoss loss = sample_loss(kernels(), logits, batch, classes_, scale);
    if (!adapters_.empty()) {
      backward_adapters(parameters, batch, destination, space);
      return loss;
    }
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

  // All layers are frozen: skips the weights' gradients, and the inputs' gradients below the lowest layer
  // with an adapter.
  void backward_adapters(std::span<const float> parameters, const Batch& batch,
                         const Destination& destination, DenseWorkspace& space) const {
    const std::size_t rows = batch.inputs.size() / input_size_;
    const std::size_t ranks = std::min(space.ranks, adapters_.rank());
    const float* merged = space.adapter.merged.data();
    std::fill_n(destination.values + adapters_.offset(), adapters_.rank() * adapters_.row(), 0.0F);
    const float* dy = space.outputs.back().data();
    for (std::size_t i = layers_.size(); i-- > 0;) {
      const Layer& layer = layers_[i];
      const float* x = i > 0 ? space.outputs[i - 1].data() : batch.inputs.data();
      const std::size_t matrix = adapters_.find(layer.weight);
      if (matrix < adapters_.matrices().size()) {
        adapters_.add_gradient(kernels(), matrix, ranks, {rows, {x, layer.in, 1}, {dy, layer.out, 1}},
                               parameters, destination.values, space.adapter, space.scratch.data());
        space.products.weights += 2 * rows * ranks * (layer.in + layer.out);
      }
      if (layer.weight == adapters_.matrices().front().weight) break;
      float* dx = space.gradients[i - 1].data();
      kernels().dense_backward(shape_of(layer, rows), dy, merged + layer.weight, dx);
      kernels().relu_backward(x, dx, rows * layer.in);
      space.products.inputs += rows * layer.out * layer.in;
      dy = dx;
    }
  }

  std::size_t points_;
  std::vector<Layer> layers_;
  Adapters adapters_;
};

}  // namespace

std::unique_ptr<Model> make_dense_model(const std::vector<std::size_t>& widths, const AdapterSpec& adapter,
                                        std::size_t points) {
  return std::make_unique<DenseModel>(widths, points, adapter);
}

}  // namespace fedge::learn
