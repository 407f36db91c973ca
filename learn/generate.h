// Text from a language model, token by token: each drawn from softmax(logits / temperature) over the `top`
// likeliest. The model sees the last `context` tokens. Cost: a forward pass over them for each token.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "core/result.h"
#include "core/rng.h"
#include "learn/model.h"

namespace fedge::learn {

struct GenerateOptions {
  std::size_t tokens = 200;            // to be written
  double temperature = 0.8;            // 0: always the likeliest, ties to the lower
  std::size_t top = 40;                // 0: all
  std::size_t ranks = SIZE_MAX;        // of the model's adapters
  std::function<bool(Token)> written;  // called with each; false ends it
};

// `prompt` holds at least one token, each of the vocabulary; the model is a language model. What was written.
std::vector<Token> generate(const Model& model, std::span<const float> parameters,
                            std::span<const Token> prompt, const GenerateOptions& options, Rng rng);

}  // namespace fedge::learn
