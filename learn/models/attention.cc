#include "learn/models/attention.h"

#include <algorithm>
#include <cmath>

namespace fedge::learn {
namespace {

constexpr std::size_t kQueries = 32;  // in a block

// Calls visit(first, count) for each block of positions.
template <class Visit>
void for_each_block(std::size_t length, const Visit& visit) {
  for (std::size_t first = 0; first < length; first += kQueries)
    visit(first, std::min(kQueries, length - first));
}

float score_scale(const AttentionShape& shape) {
  return 1.0F / std::sqrt(static_cast<float>(shape.width / shape.heads));
}

// Calls visit() for each head of each sequence with the offsets of its part of `qkv`, the probabilities and
// the output.
template <class Visit>
void for_each_head(const AttentionShape& shape, const Visit& visit) {
  const std::size_t size = shape.width / shape.heads;
  std::size_t number = 0;
  for (std::size_t s = 0; s < shape.sequences; ++s)
    for (std::size_t h = 0; h < shape.heads; ++h, ++number)
      visit(s * shape.length * 3 * shape.width + h * size, number * shape.length * shape.length,
            s * shape.length * shape.width + h * size);
}

}  // namespace

void attention_forward(const Kernels& kernels, const AttentionShape& shape, const float* qkv,
                       float* probabilities, float* output, float* scratch) {
  const std::size_t size = shape.width / shape.heads;
  const std::size_t row = 3 * shape.width;
  const float scale = score_scale(shape);
  for_each_head(shape, [&](std::size_t in, std::size_t square, std::size_t out) {
    const float* q = qkv + in;
    const float* k = q + shape.width;
    const float* v = k + shape.width;
    for_each_block(shape.length, [&](std::size_t first, std::size_t count) {
      const std::size_t seen = first + count;
      float* p = probabilities + square + first * shape.length;
      kernels.product({count, size, seen}, {q + first * row, row, 1}, {k, 1, row},
                      {.data = p, .row = shape.length}, scratch);
      kernels.causal_softmax({count, first, seen, shape.length, scale}, p);
      kernels.product({count, seen, size}, {p, shape.length, 1}, {v, row, 1},
                      {.data = output + out + first * shape.width, .row = shape.width}, scratch);
    });
  });
}

void attention_backward(const Kernels& kernels, const AttentionShape& shape, const AttentionPass& pass,
                        float* scratch) {
  const std::size_t size = shape.width / shape.heads;
  const std::size_t row = 3 * shape.width;
  const std::size_t length = shape.length;
  const float scale = score_scale(shape);
  for_each_head(shape, [&](std::size_t in, std::size_t square, std::size_t out) {
    const float* q = pass.qkv + in;
    const float* k = q + shape.width;
    const float* v = k + shape.width;
    float* dq = pass.dqkv + in;
    const float* p = pass.probabilities + square;
    const float* dy = pass.doutput + out;
    for_each_block(length, [&](std::size_t first, std::size_t count) {
      const std::size_t seen = first + count;
      float* ds = pass.space + first * length;
      kernels.product({count, size, seen}, {dy + first * shape.width, shape.width, 1}, {v, 1, row},
                      {.data = ds, .row = length}, scratch);
      kernels.causal_softmax_backward({count, first, seen, length, scale}, p + first * length, ds);
      kernels.product({count, seen, size}, {ds, length, 1}, {k, row, 1},
                      {.data = dq + first * row, .row = row}, scratch);
    });
    // A key is seen by the queries from its own position on.
    for_each_block(length, [&](std::size_t first, std::size_t count) {
      const std::size_t corner = first * length + first;
      const ProductShape seen{count, length - first, size};
      kernels.product(seen, {pass.space + corner, 1, length}, {q + first * row, row, 1},
                      {.data = dq + shape.width + first * row, .row = row}, scratch);
      kernels.product(seen, {p + corner, 1, length}, {dy + first * shape.width, shape.width, 1},
                      {.data = dq + 2 * shape.width + first * row, .row = row}, scratch);
    });
  });
}

}  // namespace fedge::learn
