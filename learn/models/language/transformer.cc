#include "learn/models/language/transformer.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <utility>

#include "core/check.h"
#include "learn/models/adapters.h"
#include "learn/models/language/decoder.h"
#include "learn/models/language/passes.h"
#include "learn/models/language/split.h"
#include "learn/models/loss.h"

namespace fedge::learn {
namespace {

constexpr double kInitialDeviation = 0.02;  // standard deviation of the initial weights

// Appends the tensors of a transformer to a layout.
class TensorWriter {
 public:
  TensorWriter(ParameterLayout& layout, bool trainable) : layout_(layout), trainable_(trainable) {}

  void next_layer() { ++layer_; }
  std::size_t layer() const { return layer_; }
  std::size_t add(const std::string& name, std::vector<std::size_t> shape) {
    layout_.add(name, std::move(shape), {.layer = layer_, .trainable = trainable_});
    return layout_.tensors().back().offset;
  }
  NormPlace add_norm(const std::string& name, std::size_t width, bool bias) {
    NormPlace norm{.weight = add(name + ".weight", {width})};
    if (bias) norm.bias = add(name + ".bias", {width});
    return norm;
  }
  // Matrices named stem + name, with the same inputs.
  LinearPlace add_linear(const std::string& stem,
                         const std::vector<std::pair<std::string, std::size_t>>& matrices, std::size_t in,
                         bool biases) {
    LinearPlace place{.weight = layout_.size(), .in = in, .outs = {}};
    for (const auto& [name, out] : matrices) {
      add(stem + name + ".weight", {out, in});
      place.outs.push_back(out);
    }
    if (!biases) return place;
    place.bias = layout_.size();
    for (const auto& [name, out] : matrices) add(stem + name + ".bias", {out});
    return place;
  }

 private:
  ParameterLayout& layout_;
  bool trainable_;
  std::uint32_t layer_ = 0;
};

class Transformer final : public Model {
 public:
  Transformer(const TransformerShape& shape, const AdapterSpec& adapter)
      : parts_{
            .shape = shape, .rotary = {}, .adapters = Adapters(adapter.rank, adapter.scale), .places = {}} {
    if (shape.llama) parts_.rotary = RotaryTable(shape.rotary, shape.context, shape.head_size());
    auto layout = std::make_shared<ParameterLayout>();
    add_tensors(*layout, adapter.rank == 0);
    if (adapter.rank > 0) attach_adapters(adapter, *layout);
    if (adapter.rank > 0) split_ = make_transformer_split(parts_);
    layout_ = std::move(layout);
    input_size_ = shape.context;
    classes_ = shape.vocabulary;
  }

  const Adapters* adapters() const override { return parts_.adapters.empty() ? nullptr : &parts_.adapters; }
  // Each matrix once for each token. The embeddings are looked up, unless they are the head as well.
  std::vector<double> weight_uses() const override {
    std::vector<double> uses(parts_.shape.layers + 3, static_cast<double>(parts_.shape.context));
    if (!parts_.shape.tied) uses.front() = 0;
    return uses;
  }
  bool reads_apart() const override { return adapters() != nullptr; }
  const SplitModel* split() const override { return split_.get(); }
  bool steps_in_place() const override { return false; }
  std::size_t outputs_per_sample() const override { return parts_.shape.context; }

  void initialise(std::span<float> parameters, const Rng& rng) const override {
    std::ranges::fill(parameters, 0.0F);
    for (std::size_t t = 0; t < layout_->tensors().size(); ++t) {
      const TensorInfo& tensor = layout_->tensors()[t];
      if (tensor.order == TensorOrder::kRankMajor) continue;
      const auto values = parameters.subspan(tensor.offset, tensor.size);
      if (tensor.shape.size() == 1) {
        const bool gain = tensor.name.ends_with(".weight");
        std::ranges::fill(values, gain ? 1.0F : 0.0F);
        continue;
      }
      // Weights that add to the residual stream start smaller, the more layers there are (GPT-2, section
      // 2.3).
      const bool residual = tensor.name.ends_with(".o.weight") || tensor.name.ends_with(".down.weight");
      const double deviation =
          residual ? kInitialDeviation / std::sqrt(2.0 * static_cast<double>(parts_.shape.layers))
                   : kInitialDeviation;
      Rng stream = rng.fork("init", t);
      for (float& value : values) value = static_cast<float>(stream.normal() * deviation);
    }
    if (!parts_.adapters.empty()) parts_.adapters.initialise(parameters, rng);
  }

  std::unique_ptr<Workspace> make_workspace(std::size_t max_batch) const override {
    auto workspace = std::make_unique<TransformerSpace>(parts_.shape, parts_.adapters, max_batch);
    workspace->trained = trained_rows(*layout_, Coverage::all(layout_->size()));
    return workspace;
  }

  std::unique_ptr<TextDecoder> make_decoder(std::span<const float> parameters,
                                            std::size_t ranks) const override {
    return make_transformer_decoder(parts_.shape, parts_.places, parts_.rotary, parts_.adapters, parameters,
                                    ranks);
  }

  void forward(std::span<const float> parameters, const Batch& batch, std::span<float> logits,
               Workspace& workspace) const override {
    auto& space = static_cast<TransformerSpace&>(workspace);
    space.prepare(false, parts_.shape.layers);
    visit_pieces(parts_, batch, space, [&](std::size_t first, std::size_t count) {
      const Pass pass = parts_.pass(parameters, parts_.length_of(batch), count, space, nullptr);
      embed(pass, batch.tokens.subspan(first, count));
      blocks_forward(pass, 0, parts_.shape.layers);
      head_forward(pass, space.input(parts_.shape.layers), logits.data() + first * parts_.shape.vocabulary);
    });
  }

  BatchLoss loss_and_gradient(std::span<const float> parameters, const Batch& batch,
                              std::span<float> gradient, Workspace& workspace) const override {
    auto& space = static_cast<TransformerSpace&>(workspace);
    FEDGE_CHECK(batch.targets.size() == batch.tokens.size(), "a target for each token");
    clear(gradient, space.trained);
    const std::size_t blocks = parts_.shape.layers;
    space.prepare(true, blocks);
    TokenLoss loss(batch.targets, parts_.length_of(batch));
    visit_pieces(parts_, batch, space, [&](std::size_t first, std::size_t count) {
      const Pass pass = parts_.pass(parameters, parts_.length_of(batch), count, space, gradient.data());
      const auto tokens = batch.tokens.subspan(first, count);
      embed(pass, tokens);
      blocks_forward(pass, 0, blocks);
      head_loss(pass, space.input(blocks), first, loss);
      blocks_backward(pass, 0, blocks);
      if (trains(pass, 0)) embed_backward(pass, tokens);
    });
    return loss.result();
  }

 private:
  void add_tensors(ParameterLayout& layout, bool trainable);
  void attach_adapters(const AdapterSpec& adapter, ParameterLayout& layout);

  // The gradients of all layers with a trained row are computed whole.
  void clear(std::span<float> gradient, const TrainedRows& trained) const {
    for (const TensorInfo& tensor : layout_->tensors())
      if (tensor.trainable && !trained.layers[tensor.layer].either.empty())
        std::memset(gradient.data() + tensor.offset, 0, tensor.size * sizeof(float));
  }

  TransformerParts parts_;
  std::unique_ptr<SplitModel> split_;  // null without adapters
};

void Transformer::add_tensors(ParameterLayout& layout, bool trainable) {
  const std::size_t d = parts_.shape.width;
  const bool biases = !parts_.shape.llama;
  const std::size_t keys = parts_.shape.shared * parts_.shape.head_size();
  TensorWriter writer(layout, trainable);
  parts_.places.tokens = writer.add("token_embedding", {parts_.shape.vocabulary, d});
  if (!parts_.shape.llama)
    parts_.places.positions = writer.add("position_embedding", {parts_.shape.positions, d});
  for (std::size_t i = 1; i <= parts_.shape.layers; ++i) {
    writer.next_layer();
    const std::string name = "block" + std::to_string(i);
    BlockPlace block{.layer = writer.layer()};
    block.norm1 = writer.add_norm(name + ".norm1", d, biases);
    block.qkv = writer.add_linear(name + ".attention.", {{"q", d}, {"k", keys}, {"v", keys}}, d, biases);
    block.o = writer.add_linear(name + ".attention.", {{"o", d}}, d, biases);
    block.norm2 = writer.add_norm(name + ".norm2", d, biases);
    std::vector<std::pair<std::string, std::size_t>> raised{{"up", parts_.shape.hidden}};
    if (parts_.shape.llama) raised.insert(raised.begin(), {"gate", parts_.shape.hidden});
    block.up = writer.add_linear(name + ".mlp.", raised, d, biases);
    block.down = writer.add_linear(name + ".mlp.", {{"down", d}}, parts_.shape.hidden, biases);
    parts_.places.blocks.push_back(std::move(block));
  }
  writer.next_layer();
  parts_.places.norm_layer = writer.layer();
  parts_.places.norm = writer.add_norm("norm", d, biases);
  parts_.places.head =
      parts_.shape.tied ? parts_.places.tokens : writer.add("head.weight", {parts_.shape.vocabulary, d});
}

void Transformer::attach_adapters(const AdapterSpec& adapter, ParameterLayout& layout) {
  const auto wanted = [&](const std::string& target) {
    return adapter.targets.empty() || std::ranges::find(adapter.targets, target) != adapter.targets.end();
  };
  std::vector<std::string> names;
  for (std::size_t i = 0; i < parts_.shape.layers; ++i) {
    const std::string block = "block" + std::to_string(i + 1);
    for (const char* part : {"q", "k", "v", "o"})
      if (wanted(part)) names.push_back(block + ".attention." + part + ".weight");
    for (const char* part : {"gate", "up", "down"})
      if (wanted(part) && layout.find(block + ".mlp." + part + ".weight") != nullptr)
        names.push_back(block + ".mlp." + part + ".weight");
  }
  parts_.adapters.attach(names, layout, static_cast<std::uint32_t>(parts_.shape.layers + 2));
}

}  // namespace

std::unique_ptr<Model> make_transformer(const TransformerShape& shape, const AdapterSpec& adapter) {
  return std::make_unique<Transformer>(shape, adapter);
}

}  // namespace fedge::learn
