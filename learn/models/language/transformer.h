// A decoder-only transformer with pre-norm blocks, x += attention(norm(x)), x += mlp(norm(x)). Before them is
// a token embedding, after them a norm and a head without bias, which may share the token embedding's
// weights. Two families:
//   GPT-2 (Radford et al. 2019): a position embedding, layer norms, biases; the MLP has one hidden layer with
//     the tanh approximation of GELU
//   Llama (Touvron et al. 2023): rotary positions, RMS norms, no biases; the MLP is W_down (silu(W_gate x) *
//     W_up x); several query heads may share a head of keys and values
// Tensors: "token_embedding" [vocabulary, width], GPT-2 "position_embedding" [positions, width]; for each
// block i from 1 "blocki.norm1.weight", ".attention.q.weight" [width, width], ".attention.k.weight" [shared
// heads * head size, width] ("v"), ".attention.o.weight", ".norm2", Llama ".mlp.gate", ".mlp.up",
// ".mlp.down"; then "norm" and, if not tied, "head.weight". Biases are named ".bias". A batch is processed in
// pieces of whole sequences, about kBlockTokens tokens each, whose gradients are added. Products of that size
// are efficient, and memory does not grow with the batch.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>

#include "learn/model.h"
#include "learn/models/language/rotary.h"

namespace fedge::learn {

inline constexpr std::size_t kBlockTokens = 512;

struct TransformerShape {
  std::size_t vocabulary = 0;
  std::size_t context = 0;    // maximum number of tokens in a sequence
  std::size_t positions = 0;  // longest context; GPT-2: rows of the position embedding
  std::size_t layers = 0;
  std::size_t width = 0;   // a multiple of heads
  std::size_t heads = 0;   // a multiple of shared
  std::size_t shared = 0;  // heads with keys and values of their own
  std::size_t hidden = 0;  // units of the MLP's hidden layer
  bool tied = true;
  bool llama = false;
  float epsilon = 1e-5F;  // Llama: of the RMS norms
  RotarySpec rotary;      // Llama

  std::size_t head_size() const { return width / heads; }
  // Floats of a token's queries, keys and values.
  std::size_t qkv() const { return (heads + 2 * shared) * head_size(); }
  // Sequences of a piece, if a batch has `max_batch`.
  std::size_t sequences(std::size_t max_batch) const {
    return std::min(max_batch, std::max<std::size_t>(1, kBlockTokens / context));
  }
  // Floats of a token before the curve of the MLP.
  std::size_t raised() const { return llama ? 2 * hidden : hidden; }
};

// The adapters' targets are layers of every block: "q", "k", "v", "o", "gate" (Llama), "up", "down"; an empty
// list means all.
std::unique_ptr<Model> make_transformer(const TransformerShape& shape, const AdapterSpec& adapter);

}  // namespace fedge::learn
