#include "learn/models/language/passes.h"

#include <algorithm>
#include <cstring>

#include "core/check.h"
#include "learn/kernels/kernels.h"
#include "learn/models/compact_weights.h"

namespace fedge::learn {
namespace {

// The lowest layer that needs the gradient of its outputs.
std::size_t lowest(const Pass& pass) { return pass.adapters.empty() ? pass.space.trained.lowest() : 1; }

// Calls visit(weights, first, count) for the head's rows of tokens first, first + 1, ... of the vocabulary. A
// head of float32 is visited at once, a compact one in parts.
template <class Visit>
void visit_head(const Pass& pass, const Visit& visit) {
  const std::size_t d = pass.shape.width;
  const std::size_t vocabulary = pass.shape.vocabulary;
  const std::size_t most = pass.matrices == nullptr ? kHeadTokens : vocabulary;
  for (std::size_t first = 0; first < vocabulary; first += most) {
    const std::size_t count = std::min(most, vocabulary - first);
    const std::size_t at = pass.places.head + first * d;
    visit(values_of(pass, {at, at + count * d}, pass.space.merged.data()), first, count);
  }
}

void score(const Pass& pass, const float* normed, std::size_t rows, float* logits) {
  visit_head(pass, [&](const float* weights, std::size_t first, std::size_t count) {
    kernels().product({rows, pass.shape.width, count}, {normed, pass.shape.width, 1},
                      {weights, 1, pass.shape.width}, {.data = logits + first, .row = pass.shape.vocabulary},
                      pass.space.scratch.data());
  });
}

}  // namespace

Pass TransformerParts::pass(std::span<const float> parameters, std::size_t length, std::size_t rows,
                            TransformerSpace& space, float* gradient) const {
  const float* weights = space.frozen != nullptr && !adapters.empty() ? space.frozen : parameters.data();
  const CompactWeights* base = adapters.empty() ? nullptr : space.base;
  return {.shape = shape,
          .rotary = rotary,
          .adapters = adapters,
          .places = places,
          .parameters = parameters,
          .weights = weights,
          .matrices = base == nullptr ? weights : base->floats(),
          .base = base,
          .ranks = std::min(space.ranks, adapters.rank()),
          .rows = rows,
          .length = length,
          .space = space,
          .gradient = gradient};
}

bool trains(const Pass& pass, std::size_t layer) {
  return pass.adapters.empty() && !pass.space.trained.layers[layer].either.empty();
}

void head_forward(const Pass& pass, const float* x, float* logits) {
  norm_forward(pass, pass.places.norm, x, pass.space.normed.data(), pass.space.statistics.data());
  score(pass, pass.space.normed.data(), pass.rows, logits);
}

void embed(const Pass& pass, std::span<const Token> tokens) {
  const std::size_t d = pass.shape.width;
  const auto write = [&](std::size_t at, float* to) {
    const float* values = values_of(pass, {at, at + d}, to);
    if (values != to) std::copy_n(values, d, to);
  };
  for (std::size_t r = 0; r < pass.rows; ++r) {
    FEDGE_CHECK(tokens[r] < pass.shape.vocabulary, "a token of the vocabulary");
    float* x = pass.space.input(0) + r * d;
    write(pass.places.tokens + tokens[r] * d, x);
    if (pass.shape.llama) continue;
    const std::size_t at = pass.places.positions + r % pass.length * d;
    const float* position = values_of(pass, {at, at + d}, pass.space.merged.data());
    for (std::size_t i = 0; i < d; ++i) x[i] += position[i];
  }
}

void blocks_forward(const Pass& pass, std::size_t first, std::size_t last) {
  TransformerSpace& space = pass.space;
  for (std::size_t i = first; i < last; ++i)
    block_forward(pass, pass.places.blocks[i], space.activations(i), space.input(i), space.input(i + 1));
}

// Computes the scores of some tokens at a time.
void head_loss(const Pass& pass, const float* x, std::size_t first, TokenLoss& loss) {
  const std::size_t d = pass.shape.width;
  const std::size_t vocabulary = pass.shape.vocabulary;
  TransformerSpace& space = pass.space;
  float* scratch = space.scratch.data();
  norm_forward(pass, pass.places.norm, x, space.normed.data(), space.statistics.data());
  const bool trained = trains(pass, pass.shape.tied ? 0 : pass.places.norm_layer);
  for (std::size_t row = 0; row < pass.rows; row += space.scored) {
    const std::size_t rows = std::min(space.scored, pass.rows - row);
    const float* normed = space.normed.data() + row * d;
    score(pass, normed, rows, space.logits.data());
    loss.add(kernels(), space.logits.span().first(rows * vocabulary), first + row, vocabulary);
    visit_head(pass, [&](const float* weights, std::size_t token, std::size_t count) {
      kernels().product({rows, count, d}, {space.logits.data() + token, vocabulary, 1}, {weights, d, 1},
                        {.data = space.dnormed.data() + row * d, .row = d, .add = token > 0}, scratch);
    });
    space.products.inputs += rows * vocabulary * d;
    if (!trained) continue;
    kernels().product({vocabulary, rows, d}, {space.logits.data(), 1, vocabulary}, {normed, d, 1},
                      {.data = pass.gradient + pass.places.head, .row = d, .add = true}, scratch);
    space.products.weights += rows * vocabulary * d;
  }
  std::memset(space.dx.data(), 0, pass.rows * d * sizeof(float));
  norm_backward(pass, pass.places.norm, x, space.statistics.data(),
                {.weights = trains(pass, pass.places.norm_layer)});
}

void blocks_backward(const Pass& pass, std::size_t first, std::size_t last) {
  TransformerSpace& space = pass.space;
  const std::size_t below = lowest(pass);
  for (std::size_t i = last; i-- > first && pass.places.blocks[i].layer >= below;) {
    const BlockPlace& block = pass.places.blocks[i];
    // What the forward pass of the next block has overwritten.
    if (space.recompute && i + 1 < last)
      block_forward(pass, block, space.activations(i), space.input(i), nullptr);
    block_backward(
        pass, block, space.activations(i), space.input(i),
        {.weights = !pass.adapters.empty() || trains(pass, block.layer), .inputs = block.layer > below});
  }
}

void embed_backward(const Pass& pass, std::span<const Token> tokens) {
  const std::size_t d = pass.shape.width;
  for (std::size_t r = 0; r < pass.rows; ++r) {
    const float* dx = pass.space.dx.data() + r * d;
    kernels().axpy(1, dx, pass.gradient + pass.places.tokens + tokens[r] * d, d);
    if (!pass.shape.llama)
      kernels().axpy(1, dx, pass.gradient + pass.places.positions + r % pass.length * d, d);
  }
}

}  // namespace fedge::learn
