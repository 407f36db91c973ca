// Causal multi-head attention between two linear layers (Vaswani et al., NeurIPS 2017, section 3.2), over
// sequences of equal length. Several heads may share their keys and values (Ainslie et al., "GQA", EMNLP
// 2023). For each token, `qkv` holds the queries of all heads, then the keys, then the values. Queries are
// processed in blocks, so that most of the masked scores are not computed.
#pragma once

#include <cstddef>

#include "learn/kernels/kernels.h"

namespace fedge::learn {

struct AttentionShape {
  std::size_t sequences = 0;
  std::size_t length = 0;  // of each sequence
  std::size_t heads = 0;   // a multiple of shared
  std::size_t shared = 0;  // heads with keys and values
  std::size_t size = 0;    // floats of a head
  std::size_t width() const { return heads * size; }
  std::size_t row() const { return (heads + 2 * shared) * size; }  // floats of a token in qkv
};

// output: tokens x width(). probabilities: sequences x heads x length x length, needed by
// attention_backward().
void attention_forward(const Kernels& kernels, const AttentionShape& shape, const float* qkv,
                       float* probabilities, float* output, float* scratch);

struct AttentionPass {
  const float* qkv = nullptr;
  const float* probabilities = nullptr;
  const float* doutput = nullptr;  // tokens x width()
  float* dqkv = nullptr;           // written
  float* space = nullptr;          // length x length
};
void attention_backward(const Kernels& kernels, const AttentionShape& shape, const AttentionPass& pass,
                        float* scratch);

}  // namespace fedge::learn
