#include "learn/models/language/block.h"

#include <algorithm>
#include <numeric>

#include "learn/kernels/kernels.h"
#include "learn/models/language/attention.h"

namespace fedge::learn {
namespace {

AttentionShape attention_of(const Pass& pass) {
  return {.sequences = pass.rows / pass.length,
          .length = pass.length,
          .heads = pass.shape.heads,
          .shared = pass.shape.shared,
          .size = pass.shape.head_size()};
}

// y (+)= x W^T + bias.
void linear_forward(const Pass& pass, const LinearPlace& layer, const float* x, float* y, bool add) {
  const std::size_t out = layer.out();
  kernels().product({pass.rows, layer.in, out}, {x, layer.in, 1}, {weights_of(pass, layer), 1, layer.in},
                    {.data = y,
                     .row = out,
                     .bias = layer.bias == kNoBias ? nullptr : pass.weights + layer.bias,
                     .add = add},
                    pass.space.scratch.data());
}

// Adds the gradients of the adapters of a layer's matrices.
void adapters_backward(const Pass& pass, const LinearPlace& layer, const float* x, const float* dy) {
  TransformerSpace& space = pass.space;
  const std::size_t row = layer.out();
  std::size_t first = 0;
  for (const std::size_t out : layer.outs) {
    const std::size_t matrix = pass.adapters.find(layer.weight + first * layer.in);
    if (matrix < pass.adapters.matrices().size()) {
      pass.adapters.add_gradient(kernels(), matrix, pass.ranks,
                                 {pass.rows, {x, layer.in, 1}, {dy + first, row, 1}}, pass.parameters,
                                 pass.gradient, space.adapter, space.scratch.data());
      space.products.weights += 2 * pass.rows * pass.ranks * (layer.in + out);
    }
    first += out;
  }
}

// Computes dx (rows x in; skipped if null) from dy, and adds the gradient of the layer or of its adapters.
void linear_backward(const Pass& pass, const LinearPlace& layer, const float* x, const float* dy, float* dx,
                     bool weights) {
  TransformerSpace& space = pass.space;
  const std::size_t out = layer.out();
  float* scratch = space.scratch.data();
  if (dx != nullptr) {
    kernels().product({pass.rows, out, layer.in}, {dy, out, 1}, {weights_of(pass, layer), layer.in, 1},
                      {.data = dx, .row = layer.in}, scratch);
    space.products.inputs += pass.rows * out * layer.in;
  }
  if (!weights) return;
  if (!pass.adapters.empty()) return adapters_backward(pass, layer, x, dy);
  kernels().product({out, pass.rows, layer.in}, {dy, 1, out}, {x, layer.in, 1},
                    {.data = pass.gradient + layer.weight, .row = layer.in, .add = true}, scratch);
  if (layer.bias != kNoBias)
    kernels().bias_update({pass.rows, layer.in, out}, {0, out}, dy, 1.0F, pass.gradient + layer.bias);
  space.products.weights += pass.rows * out * layer.in;
}

RotaryTable::Heads turned(const Pass& pass, float* qkv, bool back) {
  return {.data = qkv,
          .rows = pass.rows,
          .row = pass.shape.qkv(),
          .count = pass.shape.heads + pass.shape.shared,  // the queries, then the keys
          .length = pass.length,
          .back = back};
}

// Writes the weights of a layer without adapters where they will be merged.
float* expanded(const Pass& pass, const LinearPlace& layer) {
  std::size_t at = layer.weight;
  float* to = pass.space.merged.data();
  for (const std::size_t out : layer.outs) {
    const std::size_t size = out * layer.in;
    pass.base->expand({at, at + size}, to);
    at += size;
    to += size;
  }
  return pass.space.merged.data();
}

void mlp_backward(const Pass& pass, const BlockPlace& block, Activations& a, const Wanted& wanted) {
  TransformerSpace& space = pass.space;
  const bool llama = pass.shape.llama;
  float* dbent = llama ? space.dbent.data() : space.draised.data();
  linear_backward(pass, block.down, a.bent.data(), space.dx.data(), dbent, wanted.weights);
  if (llama)
    kernels().gated_silu_backward({pass.rows, pass.shape.hidden}, a.raised.data(), dbent,
                                  space.draised.data());
  else
    kernels().gelu_backward(a.raised.data(), dbent, pass.rows * pass.shape.hidden);
  linear_backward(pass, block.up, a.normed2.data(), space.draised.data(), space.dnormed.data(),
                  wanted.weights);
  norm_backward(pass, block.norm2, a.x2.data(), a.statistics2.data(), wanted);
}

}  // namespace

std::size_t LinearPlace::out() const { return std::accumulate(outs.begin(), outs.end(), std::size_t{0}); }

const float* values_of(const Pass& pass, const Range& parameters, float* room) {
  if (pass.matrices != nullptr) return pass.matrices + parameters.begin;
  pass.base->expand(parameters, room);
  return room;
}

const float* weights_of(const Pass& pass, const LinearPlace& layer) {
  float* merged = pass.matrices == nullptr ? expanded(pass, layer) : nullptr;
  const float* weights = merged == nullptr ? pass.matrices + layer.weight : merged;
  if (pass.adapters.empty() || pass.ranks == 0) return weights;
  const std::size_t none = pass.adapters.matrices().size();
  std::size_t first = 0;
  for (const std::size_t out : layer.outs) {
    const std::size_t matrix = pass.adapters.find(layer.weight + first);
    if (matrix != none) {
      if (merged == nullptr) {
        merged = pass.space.merged.data();
        std::copy_n(weights, layer.out() * layer.in, merged);
      }
      pass.adapters.add_product(kernels(), matrix, pass.parameters, pass.ranks, merged + first,
                                pass.space.scratch.data());
    }
    first += out * layer.in;
  }
  return merged == nullptr ? weights : merged;
}

void norm_forward(const Pass& pass, const NormPlace& norm, const float* x, float* y,
                  NormStatistics* statistics) {
  const NormShape rows{pass.rows, pass.shape.width};
  const float* gain = pass.weights + norm.weight;
  if (norm.bias == kNoBias) return kernels().rms_norm(rows, pass.shape.epsilon, x, gain, y, statistics);
  kernels().layer_norm(rows, x, gain, pass.weights + norm.bias, y, statistics);
}

void norm_backward(const Pass& pass, const NormPlace& norm, const float* x, const NormStatistics* statistics,
                   const Wanted& wanted) {
  const NormShape rows{pass.rows, pass.shape.width};
  const float* gain = pass.weights + norm.weight;
  const float* dy = pass.space.dnormed.data();
  const bool weights = wanted.weights && pass.adapters.empty();
  if (norm.bias == kNoBias) {
    kernels().rms_norm_backward(rows, x, gain, statistics, dy, pass.space.dx.data());
    if (weights) kernels().rms_norm_gradient(rows, x, statistics, dy, pass.gradient + norm.weight);
    return;
  }
  kernels().layer_norm_backward(rows, x, gain, statistics, dy, pass.space.dx.data());
  if (weights)
    kernels().layer_norm_gradient(rows, x, statistics, dy, pass.gradient + norm.weight,
                                  pass.gradient + norm.bias);
}

void block_forward(const Pass& pass, const BlockPlace& block, Activations& a, const float* x, float* out) {
  const std::size_t floats = pass.rows * pass.shape.width;
  norm_forward(pass, block.norm1, x, a.normed1.data(), a.statistics1.data());
  linear_forward(pass, block.qkv, a.normed1.data(), a.qkv.data(), false);
  if (pass.shape.llama) pass.rotary.turn(turned(pass, a.qkv.data(), false));
  attention_forward(kernels(), attention_of(pass), a.qkv.data(), a.probabilities.data(), a.attended.data(),
                    pass.space.scratch.data());
  std::copy_n(x, floats, a.x2.data());
  linear_forward(pass, block.o, a.attended.data(), a.x2.data(), true);
  norm_forward(pass, block.norm2, a.x2.data(), a.normed2.data(), a.statistics2.data());
  linear_forward(pass, block.up, a.normed2.data(), a.raised.data(), false);
  if (pass.shape.llama)
    kernels().gated_silu({pass.rows, pass.shape.hidden}, a.raised.data(), a.bent.data());
  else
    kernels().gelu(a.raised.data(), a.bent.data(), pass.rows * pass.shape.hidden);
  if (out == nullptr) return;
  std::copy_n(a.x2.data(), floats, out);
  linear_forward(pass, block.down, a.bent.data(), out, true);
}

void block_backward(const Pass& pass, const BlockPlace& block, Activations& a, const float* x,
                    const Wanted& wanted) {
  TransformerSpace& space = pass.space;
  mlp_backward(pass, block, a, {.weights = wanted.weights, .inputs = true});
  linear_backward(pass, block.o, a.attended.data(), space.dx.data(), space.dnormed.data(), wanted.weights);
  attention_backward(
      kernels(), attention_of(pass),
      {a.qkv.data(), a.probabilities.data(), space.dnormed.data(), space.dqkv.data(), space.square.data()},
      space.scratch.data());
  if (pass.shape.llama) pass.rotary.turn(turned(pass, space.dqkv.data(), true));
  // The first norm's own gradient needs that of its outputs.
  const bool outputs = wanted.inputs || (wanted.weights && pass.adapters.empty());
  linear_backward(pass, block.qkv, a.normed1.data(), space.dqkv.data(),
                  outputs ? space.dnormed.data() : nullptr, wanted.weights);
  if (outputs) norm_backward(pass, block.norm1, x, a.statistics1.data(), wanted);
}

}  // namespace fedge::learn
