#include "learn/models/language/attention.h"

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

float score_scale(const AttentionShape& shape) { return 1.0F / std::sqrt(static_cast<float>(shape.size)); }

// The parts of one head of one sequence.
struct Head {
  std::size_t queries = 0;  // offsets in qkv
  std::size_t keys = 0;
  std::size_t values = 0;
  std::size_t probabilities = 0;  // offset
  std::size_t output = 0;         // offset
  bool first = false;             // of those that share their keys and values
};

template <class Visit>
void for_each_head(const AttentionShape& shape, const Visit& visit) {
  const std::size_t group = shape.heads / shape.shared;
  std::size_t number = 0;
  for (std::size_t s = 0; s < shape.sequences; ++s)
    for (std::size_t h = 0; h < shape.heads; ++h, ++number) {
      const std::size_t begin = s * shape.length * shape.row();
      const std::size_t keys = begin + shape.width() + h / group * shape.size;
      visit(Head{.queries = begin + h * shape.size,
                 .keys = keys,
                 .values = keys + shape.shared * shape.size,
                 .probabilities = number * shape.length * shape.length,
                 .output = s * shape.length * shape.width() + h * shape.size,
                 .first = h % group == 0});
    }
}

}  // namespace

void attention_forward(const Kernels& kernels, const AttentionShape& shape, const float* qkv,
                       float* probabilities, float* output, float* scratch) {
  const std::size_t size = shape.size;
  const std::size_t row = shape.row();
  const float scale = score_scale(shape);
  for_each_head(shape, [&](const Head& head) {
    for_each_block(shape.length, [&](std::size_t first, std::size_t count) {
      const std::size_t seen = first + count;
      float* p = probabilities + head.probabilities + first * shape.length;
      kernels.product({count, size, seen}, {qkv + head.queries + first * row, row, 1},
                      {qkv + head.keys, 1, row}, {.data = p, .row = shape.length}, scratch);
      kernels.causal_softmax({count, first, seen, shape.length, scale}, p);
      kernels.product({count, seen, size}, {p, shape.length, 1}, {qkv + head.values, row, 1},
                      {.data = output + head.output + first * shape.width(), .row = shape.width()}, scratch);
    });
  });
}

void attention_backward(const Kernels& kernels, const AttentionShape& shape, const AttentionPass& pass,
                        float* scratch) {
  const std::size_t size = shape.size;
  const std::size_t row = shape.row();
  const std::size_t width = shape.width();
  const std::size_t length = shape.length;
  const float scale = score_scale(shape);
  for_each_head(shape, [&](const Head& head) {
    const float* q = pass.qkv + head.queries;
    const float* p = pass.probabilities + head.probabilities;
    const float* dy = pass.doutput + head.output;
    for_each_block(length, [&](std::size_t first, std::size_t count) {
      const std::size_t seen = first + count;
      float* ds = pass.space + first * length;
      kernels.product({count, size, seen}, {dy + first * width, width, 1}, {pass.qkv + head.values, 1, row},
                      {.data = ds, .row = length}, scratch);
      kernels.causal_softmax_backward({count, first, seen, length, scale}, p + first * length, ds);
      kernels.product({count, seen, size}, {ds, length, 1}, {pass.qkv + head.keys, row, 1},
                      {.data = pass.dqkv + head.queries + first * row, .row = row}, scratch);
    });
    // A key is seen by the queries from its own position on.
    for_each_block(length, [&](std::size_t first, std::size_t count) {
      const std::size_t corner = first * length + first;
      const ProductShape seen{count, length - first, size};
      const auto add_to = [&](std::size_t part) {
        return ProductTarget{.data = pass.dqkv + part + first * row, .row = row, .add = !head.first};
      };
      kernels.product(seen, {pass.space + corner, 1, length}, {q + first * row, row, 1}, add_to(head.keys),
                      scratch);
      kernels.product(seen, {p + corner, 1, length}, {dy + first * width, width, 1}, add_to(head.values),
                      scratch);
    });
  });
}

}  // namespace fedge::learn
