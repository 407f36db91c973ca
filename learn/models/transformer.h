// A decoder-only transformer with pre-norm blocks, x += attention(norm(x)), x += mlp(norm(x)) (Radford et
// al., "GPT-2", 2019). Before them are a token and a position embedding, after them a norm and a head without
// bias, which may share the token embedding's weights. The MLP's hidden layer has 4 times the width; GELU
// uses the tanh approximation. Tensors: "token_embedding" [vocabulary, width], "position_embedding" [context,
// width]; for each block i from 1 "blocki.norm1.weight", ".attention.q.weight" [width, width] ("k", "v",
// "o"), ".norm2", ".mlp.up", ".mlp.down"; then "norm" and, if not tied, "head.weight". Biases are named
// ".bias". A batch is processed in blocks of whole sequences, about kBlockTokens tokens each, whose gradients
// are added. Products of that size are efficient, and memory does not grow with the batch.
#pragma once

#include <cstddef>
#include <memory>

#include "learn/model.h"

namespace fedge::learn {

struct TransformerShape {
  std::size_t vocabulary = 0;
  std::size_t context = 0;  // maximum number of tokens in a sequence
  std::size_t layers = 0;
  std::size_t width = 0;  // a multiple of heads
  std::size_t heads = 0;
  bool tied = true;
};

inline constexpr std::size_t kBlockTokens = 512;

// The adapters' targets are layers of every block: "q", "k", "v", "o", "up", "down"; an empty list means all.
std::unique_ptr<Model> make_transformer(const TransformerShape& shape, const AdapterSpec& adapter);

}  // namespace fedge::learn
