#include "learn/models/language/decoder.h"

#include <algorithm>
#include <cmath>

#include "core/aligned_buffer.h"
#include "core/check.h"
#include "learn/kernels/kernels.h"

namespace fedge::learn {
namespace {

// Above this many rows, packing the weights is worth its cost.
constexpr std::size_t kFewRows = 8;

class TransformerDecoder final : public TextDecoder {
 public:
  TransformerDecoder(const TransformerShape& shape, const TransformerPlaces& places,
                     const RotaryTable& rotary, const Adapters& adapters, std::span<const float> parameters,
                     std::size_t ranks)
      : TextDecoder(shape.context),
        shape_(shape),
        places_(places),
        rotary_(rotary),
        scratch_(kProductScratch),
        keys_(shape.layers * shape.shared * shape.context * shape.head_size()),
        values_(keys_.size()),
        zeros_(std::max({shape.qkv(), shape.raised(), shape.width, shape.vocabulary})),
        x_(kPromptRows * shape.width),
        normed_(x_.size()),
        qkv_(kPromptRows * shape.qkv()),
        attended_(x_.size()),
        raised_(kPromptRows * shape.raised()),
        bent_(kPromptRows * shape.hidden),
        added_(x_.size()),
        weights_of_tokens_(shape.context),
        statistics_(kPromptRows),
        w_(parameters.data()) {
    if (adapters.empty() || std::min(ranks, adapters.rank()) == 0) return;
    merged_ = AlignedBuffer<float>(adapters.offset());
    adapters.merge(kernels(), parameters, ranks, merged_.data(), scratch_.data());
    w_ = merged_.data();
  }

  void read(std::span<const Token> tokens, std::span<float> scores) override {
    FEDGE_CHECK(!tokens.empty() && tokens.size() <= capacity() - length_, "tokens that fit");
    FEDGE_CHECK(scores.size() == shape_.vocabulary, "a score for each token");
    std::size_t rows = 0;
    for (std::size_t first = 0; first < tokens.size(); first += rows) {
      rows = std::min(kPromptRows, tokens.size() - first);
      embed(tokens.subspan(first, rows));
      for (std::size_t layer = 0; layer < shape_.layers; ++layer) run_block(layer, rows);
      length_ += rows;
    }
    norm(places_.norm, x_.data() + (rows - 1) * shape_.width, 1);
    multiply({1, shape_.width, shape_.vocabulary}, normed_.data(), w_ + places_.head, zeros_.data(),
             scores.data());
  }

 private:
  void embed(std::span<const Token> tokens) {
    const std::size_t d = shape_.width;
    for (std::size_t r = 0; r < tokens.size(); ++r) {
      FEDGE_CHECK(tokens[r] < shape_.vocabulary, "a token of the vocabulary");
      std::copy_n(w_ + places_.tokens + tokens[r] * d, d, x_.data() + r * d);
      if (!shape_.llama) kernels().axpy(1, w_ + places_.positions + (length_ + r) * d, x_.data() + r * d, d);
    }
  }

  // y = x w^T + bias.
  void multiply(const DenseShape& shape, const float* x, const float* w, const float* bias, float* y) {
    if (shape.rows <= kFewRows) return kernels().dense_forward(shape, x, w, bias, y);
    kernels().product({shape.rows, shape.in, shape.out}, {x, shape.in, 1}, {w, 1, shape.in},
                      {.data = y, .row = shape.out, .bias = bias}, scratch_.data());
  }
  void linear(const LinearPlace& layer, std::size_t rows, const float* x, float* y) {
    multiply({rows, layer.in, layer.out()}, x, w_ + layer.weight,
             layer.bias == kNoBias ? zeros_.data() : w_ + layer.bias, y);
  }
  void norm(const NormPlace& norm, const float* x, std::size_t rows) {
    const NormShape shape{rows, shape_.width};
    if (norm.bias == kNoBias)
      return kernels().rms_norm(shape, shape_.epsilon, x, w_ + norm.weight, normed_.data(),
                                statistics_.data());
    kernels().layer_norm(shape, x, w_ + norm.weight, w_ + norm.bias, normed_.data(), statistics_.data());
  }

  void run_block(std::size_t layer, std::size_t rows) {
    const BlockPlace& block = places_.blocks[layer];
    const std::size_t floats = rows * shape_.width;
    norm(block.norm1, x_.data(), rows);
    linear(block.qkv, rows, normed_.data(), qkv_.data());
    if (shape_.llama)
      rotary_.turn({.data = qkv_.data(),
                    .rows = rows,
                    .row = shape_.qkv(),
                    .count = shape_.heads + shape_.shared,
                    .first = length_,
                    .length = rows});
    remember(layer, rows);
    for (std::size_t r = 0; r < rows; ++r)
      for (std::size_t head = 0; head < shape_.shared; ++head) attend(layer, head, r);
    linear(block.o, rows, attended_.data(), added_.data());
    kernels().axpy(1, added_.data(), x_.data(), floats);
    norm(block.norm2, x_.data(), rows);
    linear(block.up, rows, normed_.data(), raised_.data());
    if (shape_.llama)
      kernels().gated_silu({rows, shape_.hidden}, raised_.data(), bent_.data());
    else
      kernels().gelu(raised_.data(), bent_.data(), rows * shape_.hidden);
    linear(block.down, rows, bent_.data(), added_.data());
    kernels().axpy(1, added_.data(), x_.data(), floats);
  }

  // The keys of one head of a layer by coordinate, head size x context; the values likewise.
  std::size_t place_of(std::size_t layer, std::size_t head) const {
    return (layer * shape_.shared + head) * shape_.context * shape_.head_size();
  }
  void remember(std::size_t layer, std::size_t rows) {
    const std::size_t size = shape_.head_size();
    for (std::size_t head = 0; head < shape_.shared; ++head)
      for (std::size_t i = 0; i < size; ++i) {
        const float* from = qkv_.data() + (shape_.heads + head) * size + i;
        const std::size_t to = place_of(layer, head) + i * shape_.context + length_;
        for (std::size_t r = 0; r < rows; ++r) {
          keys_.data()[to + r] = from[r * shape_.qkv()];
          values_.data()[to + r] = from[r * shape_.qkv() + shape_.shared * size];
        }
      }
  }

  // The query heads that share a head of keys and values, for one row.
  void attend(std::size_t layer, std::size_t head, std::size_t r) {
    const std::size_t size = shape_.head_size();
    const std::size_t group = shape_.heads / shape_.shared;
    const std::size_t place = place_of(layer, head);
    kernels().attend({.group = group,
                      .size = size,
                      .seen = length_ + r + 1,
                      .capacity = shape_.context,
                      .scale = 1.0F / std::sqrt(static_cast<float>(size))},
                     qkv_.data() + r * shape_.qkv() + head * group * size, keys_.data() + place,
                     values_.data() + place, weights_of_tokens_.data(),
                     attended_.data() + r * shape_.width + head * group * size);
  }

  const TransformerShape& shape_;
  const TransformerPlaces& places_;
  const RotaryTable& rotary_;
  AlignedBuffer<float> scratch_;
  AlignedBuffer<float> keys_;
  AlignedBuffer<float> values_;
  AlignedBuffer<float> zeros_;  // the bias of layers without one
  AlignedBuffer<float> x_;
  AlignedBuffer<float> normed_;
  AlignedBuffer<float> qkv_;
  AlignedBuffer<float> attended_;
  AlignedBuffer<float> raised_;
  AlignedBuffer<float> bent_;
  AlignedBuffer<float> added_;
  AlignedBuffer<float> weights_of_tokens_;
  std::vector<NormStatistics> statistics_;
  AlignedBuffer<float> merged_;
  const float* w_;
};

}  // namespace

std::unique_ptr<TextDecoder> make_transformer_decoder(const TransformerShape& shape,
                                                      const TransformerPlaces& places,
                                                      const RotaryTable& rotary, const Adapters& adapters,
                                                      std::span<const float> parameters, std::size_t ranks) {
  return std::make_unique<TransformerDecoder>(shape, places, rotary, adapters, parameters, ranks);
}

}  // namespace fedge::learn
