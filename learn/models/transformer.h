// A decoder-only transformer: token and position embedding, blocks x += attention(norm(x)),
// x += mlp(norm(x)) (pre-norm; Radford et al., "GPT-2", 2019), a last norm and a head without bias, tied to
// the token embedding or not. GELU by its tanh approximation, hidden layer of the MLP 4 times the width.
// Tensors: "token_embedding" [vocabulary, width], "position_embedding" [context, width], of block i from 1
// "blocki.norm1.weight", ".attention.q.weight" [width, width] ("k", "v", "o"), ".norm2", ".mlp.up",
// ".mlp.down", then "norm" and, if not tied, "head.weight". Biases are called ".bias".
// A batch is worked on in blocks of whole sequences, about kBlockTokens tokens, whose gradients are added:
// the products are large enough by then, and memory does not grow with the batch.
#pragma once

#include <cstddef>
#include <memory>

#include "learn/model.h"

namespace fedge::learn {

struct TransformerShape {
  std::size_t vocabulary = 0;
  std::size_t context = 0;  // most tokens of a sequence
  std::size_t layers = 0;
  std::size_t width = 0;  // a multiple of heads
  std::size_t heads = 0;
  bool tied = true;
};

inline constexpr std::size_t kBlockTokens = 512;

// The adapters' targets are layers of every block: "q", "k", "v", "o", "up", "down"; none: all of them.
std::unique_ptr<Model> make_transformer(const TransformerShape& shape, const AdapterSpec& adapter);

}  // namespace fedge::learn
