#include "learn/models/transformer.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <utility>

#include "core/check.h"
#include "learn/models/adapters.h"
#include "learn/models/attention.h"
#include "learn/models/layers.h"
#include "learn/models/loss.h"
#include "learn/models/transformer_space.h"

namespace fedge::learn {
namespace {

constexpr double kInitialDeviation = 0.02;  // standard deviation of the initial weights

struct Norm {
  std::size_t weight = 0;
  std::size_t bias = 0;
};

struct Block {
  Norm norm1;
  Layer qkv;  // three consecutive tensors [width, width], then three biases
  Layer o;
  Norm norm2;
  Layer up;
  Layer down;
};

// Some sequences of a batch, and the parameters used for them.
struct Piece {
  std::span<const Token> tokens;
  std::size_t length = 0;  // of a sequence
  const float* weights = nullptr;
  std::size_t rows() const { return tokens.size(); }
  std::size_t sequences() const { return tokens.size() / length; }
};

// Where a backward pass adds the gradient of the whole layout, and the parameters that it is for.
struct Gradient {
  float* values;
  std::span<const float> parameters;  // including the adapters'
  std::size_t ranks;                  // number of the adapters' ranks in use
};

class Transformer final : public Model {
 public:
  Transformer(const TransformerShape& shape, const AdapterSpec& adapter)
      : shape_(shape), adapters_(adapter.rank, adapter.scale) {
    auto layout = std::make_shared<ParameterLayout>();
    add_tensors(*layout, adapter.rank == 0);
    if (adapter.rank > 0) attach_adapters(adapter, *layout);
    layout_ = std::move(layout);
    input_size_ = shape.context;
    classes_ = shape.vocabulary;
  }

  const Adapters* adapters() const override { return adapters_.empty() ? nullptr : &adapters_; }
  bool steps_in_place() const override { return false; }
  std::size_t outputs_per_sample() const override { return shape_.context; }

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
      const double deviation = residual
                                   ? kInitialDeviation / std::sqrt(2.0 * static_cast<double>(shape_.layers))
                                   : kInitialDeviation;
      Rng stream = rng.fork("init", t);
      for (float& value : values) value = static_cast<float>(stream.normal() * deviation);
    }
    if (!adapters_.empty()) adapters_.initialise(parameters, rng);
  }

  std::unique_ptr<Workspace> make_workspace(std::size_t max_batch) const override {
    auto workspace = std::make_unique<TransformerSpace>(shape_, adapters_, max_batch);
    workspace->trained = trained_rows(*layout_, Coverage::all(layout_->size()));
    return workspace;
  }

  void forward(std::span<const float> parameters, const Batch& batch, std::span<float> logits,
               Workspace& workspace) const override {
    auto& space = static_cast<TransformerSpace&>(workspace);
    const float* weights = weights_of(parameters, space);
    for_each_piece(batch, space, [&](std::size_t first, std::size_t count) {
      run_forward({batch.tokens.subspan(first, count), length_of(batch), weights}, space);
      std::copy_n(space.logits.data(), count * shape_.vocabulary, logits.data() + first * shape_.vocabulary);
    });
  }

  BatchLoss loss_and_gradient(std::span<const float> parameters, const Batch& batch,
                              std::span<float> gradient, Workspace& workspace) const override {
    auto& space = static_cast<TransformerSpace&>(workspace);
    FEDGE_CHECK(batch.targets.size() == batch.tokens.size(), "a target for each token");
    const float* weights = weights_of(parameters, space);
    if (adapters_.empty())
      std::memset(gradient.data(), 0, gradient.size_bytes());
    else
      std::memset(gradient.data() + adapters_.offset(), 0,
                  adapters_.rank() * adapters_.row() * sizeof(float));
    const Gradient to{gradient.data(), parameters, std::min(workspace.ranks, adapters_.rank())};
    TokenLoss loss(batch.targets, length_of(batch));
    for_each_piece(batch, space, [&](std::size_t first, std::size_t count) {
      const Piece piece{batch.tokens.subspan(first, count), length_of(batch), weights};
      run_forward(piece, space);
      loss.add(kernels(), space.logits.span().first(count * shape_.vocabulary), first, shape_.vocabulary);
      run_backward(piece, to, space);
    });
    return loss.result();
  }

 private:
  void add_tensors(ParameterLayout& layout, bool trainable);
  void attach_adapters(const AdapterSpec& adapter, ParameterLayout& layout);

  std::size_t length_of(const Batch& batch) const {
    return batch.length == 0 ? shape_.context : batch.length;
  }

  // Calls visit(first, count) for ranges of tokens: whole sequences that fit into the workspace.
  template <class Visit>
  void for_each_piece(const Batch& batch, const TransformerSpace& space, const Visit& visit) const {
    const std::size_t length = length_of(batch);
    FEDGE_CHECK(length <= shape_.context && batch.tokens.size() % length == 0, "whole sequences");
    const std::size_t most = space.sequences * length;
    for (std::size_t first = 0; first < batch.tokens.size(); first += most)
      visit(first, std::min(most, batch.tokens.size() - first));
  }

  const float* weights_of(std::span<const float> parameters, TransformerSpace& space) const {
    if (adapters_.empty()) return parameters.data();
    return adapters_.merge(kernels(), parameters, space.ranks, space.adapter, space.scratch.data());
  }

  void run_forward(const Piece& piece, TransformerSpace& space) const;
  void run_block(const Block& block, const Piece& piece, Activations& a, float* out,
                 TransformerSpace& space) const;
  void run_backward(const Piece& piece, const Gradient& to, TransformerSpace& space) const;
  void backward_attention(const Block& block, const Piece& piece, const Gradient& to, Activations& a,
                          TransformerSpace& space) const;
  void backward_mlp(const Block& block, const Piece& piece, const Gradient& to, Activations& a,
                    TransformerSpace& space) const;
  void backward_embedding(const Piece& piece, const Gradient& to, TransformerSpace& space) const;
  // y (+)= x W^T + bias.
  void linear(const Layer& layer, const Piece& piece, const float* x, float* y, bool add,
              TransformerSpace& space) const {
    kernels().product(
        {piece.rows(), layer.in, layer.out}, {x, layer.in, 1}, {piece.weights + layer.weight, 1, layer.in},
        {.data = y, .row = layer.out, .bias = piece.weights + layer.bias, .add = add}, space.scratch.data());
  }
  // Computes dx (rows x in; skipped if null) from dy, and adds the gradient of the layer or of its adapters.
  void linear_backward(const Layer& layer, const Piece& piece, const float* x, const float* dy, float* dx,
                       const Gradient& to, TransformerSpace& space) const;
  void norm_backward(const Norm& norm, const Piece& piece, const float* x, const NormStatistics* statistics,
                     const Gradient& to, TransformerSpace& space) const;

  TransformerShape shape_;
  Adapters adapters_;
  std::size_t tokens_ = 0;     // offset of the token embedding
  std::size_t positions_ = 0;  // offset of the position embedding
  std::vector<Block> blocks_;
  Norm norm_;
  std::size_t head_ = 0;  // offset of the head's weights: the token embedding's if tied
};

void Transformer::add_tensors(ParameterLayout& layout, bool trainable) {
  std::uint32_t index = 0;
  const std::size_t d = shape_.width;
  const auto add = [&](const std::string& name, std::vector<std::size_t> dimensions) {
    layout.add(name, std::move(dimensions), {.layer = index, .trainable = trainable});
    return layout.tensors().back().offset;
  };
  const auto add_norm = [&](const std::string& name) {
    const std::size_t weight = add(name + ".weight", {d});
    return Norm{weight, add(name + ".bias", {d})};
  };
  const auto add_linear = [&](const std::string& name, std::size_t in, std::size_t out) {
    const std::size_t weight = add(name + ".weight", {out, in});
    return Layer{weight, add(name + ".bias", {out}), in, out};
  };
  tokens_ = add("token_embedding", {shape_.vocabulary, d});
  positions_ = add("position_embedding", {shape_.context, d});
  for (std::size_t i = 0; i < shape_.layers; ++i) {
    ++index;
    const std::string name = "block" + std::to_string(i + 1);
    Block block;
    block.norm1 = add_norm(name + ".norm1");
    block.qkv = {.weight = layout.size(), .bias = layout.size() + 3 * d * d, .in = d, .out = 3 * d};
    for (const char* part : {"q", "k", "v"}) add(name + ".attention." + part + ".weight", {d, d});
    for (const char* part : {"q", "k", "v"}) add(name + ".attention." + part + ".bias", {d});
    block.o = add_linear(name + ".attention.o", d, d);
    block.norm2 = add_norm(name + ".norm2");
    block.up = add_linear(name + ".mlp.up", d, 4 * d);
    block.down = add_linear(name + ".mlp.down", 4 * d, d);
    blocks_.push_back(block);
  }
  ++index;
  norm_ = add_norm("norm");
  head_ = shape_.tied ? tokens_ : add("head.weight", {shape_.vocabulary, d});
}

void Transformer::attach_adapters(const AdapterSpec& adapter, ParameterLayout& layout) {
  const auto wanted = [&](const std::string& target) {
    return adapter.targets.empty() || std::ranges::find(adapter.targets, target) != adapter.targets.end();
  };
  std::vector<std::string> names;
  for (std::size_t i = 0; i < shape_.layers; ++i) {
    const std::string block = "block" + std::to_string(i + 1);
    for (const char* part : {"q", "k", "v", "o"})
      if (wanted(part)) names.push_back(block + ".attention." + part + ".weight");
    for (const char* part : {"up", "down"})
      if (wanted(part)) names.push_back(block + ".mlp." + part + ".weight");
  }
  adapters_.attach(names, layout, static_cast<std::uint32_t>(shape_.layers + 2));
}

void Transformer::run_forward(const Piece& piece, TransformerSpace& space) const {
  const std::size_t d = shape_.width;
  const float* w = piece.weights;
  const auto input_of = [&](std::size_t i) {
    return i < blocks_.size() ? space.blocks[i].x.data() : space.x.data();
  };
  float* x = input_of(0);
  for (std::size_t r = 0; r < piece.rows(); ++r) {
    FEDGE_CHECK(piece.tokens[r] < shape_.vocabulary, "a token of the vocabulary");
    const float* token = w + tokens_ + piece.tokens[r] * d;
    const float* position = w + positions_ + r % piece.length * d;
    for (std::size_t i = 0; i < d; ++i) x[r * d + i] = token[i] + position[i];
  }
  for (std::size_t i = 0; i < blocks_.size(); ++i)
    run_block(blocks_[i], piece, space.blocks[i], input_of(i + 1), space);
  kernels().layer_norm({piece.rows(), d}, space.x.data(), w + norm_.weight, w + norm_.bias,
                       space.normed.data(), space.statistics.data());
  kernels().product({piece.rows(), d, shape_.vocabulary}, {space.normed.data(), d, 1}, {w + head_, 1, d},
                    {.data = space.logits.data(), .row = shape_.vocabulary}, space.scratch.data());
}

void Transformer::run_block(const Block& block, const Piece& piece, Activations& a, float* out,
                            TransformerSpace& space) const {
  const std::size_t d = shape_.width;
  const NormShape rows{piece.rows(), d};
  const float* w = piece.weights;
  kernels().layer_norm(rows, a.x.data(), w + block.norm1.weight, w + block.norm1.bias, a.normed1.data(),
                       a.statistics1.data());
  linear(block.qkv, piece, a.normed1.data(), a.qkv.data(), false, space);
  attention_forward(kernels(), {piece.sequences(), piece.length, shape_.heads, d}, a.qkv.data(),
                    a.probabilities.data(), a.attended.data(), space.scratch.data());
  std::copy_n(a.x.data(), piece.rows() * d, a.x2.data());
  linear(block.o, piece, a.attended.data(), a.x2.data(), true, space);
  kernels().layer_norm(rows, a.x2.data(), w + block.norm2.weight, w + block.norm2.bias, a.normed2.data(),
                       a.statistics2.data());
  linear(block.up, piece, a.normed2.data(), a.raised.data(), false, space);
  kernels().gelu(a.raised.data(), a.bent.data(), piece.rows() * 4 * d);
  std::copy_n(a.x2.data(), piece.rows() * d, out);
  linear(block.down, piece, a.bent.data(), out, true, space);
}

// Starts from d(logits) in space.logits.
void Transformer::run_backward(const Piece& piece, const Gradient& to, TransformerSpace& space) const {
  const std::size_t d = shape_.width;
  const std::size_t rows = piece.rows();
  float* scratch = space.scratch.data();
  kernels().product({rows, shape_.vocabulary, d}, {space.logits.data(), shape_.vocabulary, 1},
                    {piece.weights + head_, d, 1}, {.data = space.dnormed.data(), .row = d}, scratch);
  space.products.inputs += rows * shape_.vocabulary * d;
  if (adapters_.empty()) {
    kernels().product({shape_.vocabulary, rows, d}, {space.logits.data(), 1, shape_.vocabulary},
                      {space.normed.data(), d, 1}, {.data = to.values + head_, .row = d, .add = true},
                      scratch);
    space.products.weights += rows * shape_.vocabulary * d;
  }
  std::memset(space.dx.data(), 0, rows * d * sizeof(float));
  norm_backward(norm_, piece, space.x.data(), space.statistics.data(), to, space);
  for (std::size_t i = blocks_.size(); i-- > 0;) {
    backward_mlp(blocks_[i], piece, to, space.blocks[i], space);
    backward_attention(blocks_[i], piece, to, space.blocks[i], space);
  }
  if (adapters_.empty()) backward_embedding(piece, to, space);
}

void Transformer::backward_mlp(const Block& block, const Piece& piece, const Gradient& to, Activations& a,
                               TransformerSpace& space) const {
  linear_backward(block.down, piece, a.bent.data(), space.dx.data(), space.dbent.data(), to, space);
  kernels().gelu_backward(a.raised.data(), space.dbent.data(), piece.rows() * 4 * shape_.width);
  linear_backward(block.up, piece, a.normed2.data(), space.dbent.data(), space.dnormed.data(), to, space);
  norm_backward(block.norm2, piece, a.x2.data(), a.statistics2.data(), to, space);
}

void Transformer::backward_attention(const Block& block, const Piece& piece, const Gradient& to,
                                     Activations& a, TransformerSpace& space) const {
  linear_backward(block.o, piece, a.attended.data(), space.dx.data(), space.dnormed.data(), to, space);
  attention_backward(
      kernels(), {piece.sequences(), piece.length, shape_.heads, shape_.width},
      {a.qkv.data(), a.probabilities.data(), space.dnormed.data(), space.dqkv.data(), space.square.data()},
      space.scratch.data());
  // With adapters, nothing below the first block is trained: its input gradient is not needed.
  const bool last = &block == &blocks_.front() && !adapters_.empty();
  linear_backward(block.qkv, piece, a.normed1.data(), space.dqkv.data(),
                  last ? nullptr : space.dnormed.data(), to, space);
  if (!last) norm_backward(block.norm1, piece, a.x.data(), a.statistics1.data(), to, space);
}

void Transformer::backward_embedding(const Piece& piece, const Gradient& to, TransformerSpace& space) const {
  const std::size_t d = shape_.width;
  for (std::size_t r = 0; r < piece.rows(); ++r) {
    const float* dx = space.dx.data() + r * d;
    kernels().axpy(1, dx, to.values + tokens_ + piece.tokens[r] * d, d);
    kernels().axpy(1, dx, to.values + positions_ + r % piece.length * d, d);
  }
}

void Transformer::linear_backward(const Layer& layer, const Piece& piece, const float* x, const float* dy,
                                  float* dx, const Gradient& to, TransformerSpace& space) const {
  const std::size_t rows = piece.rows();
  float* scratch = space.scratch.data();
  if (dx != nullptr) {
    kernels().product({rows, layer.out, layer.in}, {dy, layer.out, 1},
                      {piece.weights + layer.weight, layer.in, 1}, {.data = dx, .row = layer.in}, scratch);
    space.products.inputs += rows * layer.out * layer.in;
  }
  if (adapters_.empty()) {
    kernels().product({layer.out, rows, layer.in}, {dy, 1, layer.out}, {x, layer.in, 1},
                      {.data = to.values + layer.weight, .row = layer.in, .add = true}, scratch);
    kernels().bias_update({rows, layer.in, layer.out}, {0, layer.out}, dy, 1.0F, to.values + layer.bias);
    space.products.weights += rows * layer.out * layer.in;
    return;
  }
  // Queries, keys and values are one layer with three matrices.
  const std::size_t step = layer.out == 3 * layer.in ? layer.in : layer.out;
  for (std::size_t first = 0; first < layer.out; first += step) {
    const std::size_t matrix = adapters_.find(layer.weight + first * layer.in);
    if (matrix == adapters_.matrices().size()) continue;
    adapters_.add_gradient(kernels(), matrix, to.ranks, {rows, {x, layer.in, 1}, {dy + first, layer.out, 1}},
                           to.parameters, to.values, space.adapter, scratch);
    space.products.weights += 2 * rows * to.ranks * (layer.in + step);
  }
}

// Adds to space.dx the gradient through a norm, given its outputs' gradient in space.dnormed.
void Transformer::norm_backward(const Norm& norm, const Piece& piece, const float* x,
                                const NormStatistics* statistics, const Gradient& to,
                                TransformerSpace& space) const {
  const NormShape rows{piece.rows(), shape_.width};
  kernels().layer_norm_backward(rows, x, piece.weights + norm.weight, statistics, space.dnormed.data(),
                                space.dx.data());
  if (adapters_.empty())
    kernels().layer_norm_gradient(rows, x, statistics, space.dnormed.data(), to.values + norm.weight,
                                  to.values + norm.bias);
}

}  // namespace

std::unique_ptr<Model> make_transformer(const TransformerShape& shape, const AdapterSpec& adapter) {
  return std::make_unique<Transformer>(shape, adapter);
}

}  // namespace fedge::learn
