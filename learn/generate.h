// Generates text with a language model, token by token. Each token is drawn from softmax(logits /
// temperature) over the `top` likeliest. The model sees the last `context` tokens. Cost: while they are all,
// one token for a model that has a decoder (text_decoder.h); otherwise a forward pass over them per token.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "core/result.h"
#include "core/rng.h"
#include "learn/model.h"

namespace fedge::learn {

struct GenerateOptions {
  std::size_t tokens = 200;            // at most this many are generated
  double temperature = 0.8;            // 0: always the likeliest token; ties go to the lower one
  std::size_t top = 40;                // number of candidates; 0: all tokens
  std::optional<Token> end;            // ends the generation, and is not returned
  std::size_t ranks = SIZE_MAX;        // number of ranks of the model's adapters that run
  std::function<bool(Token)> written;  // called with each token; false ends the generation
};

// Returns the tokens after the prompt. `prompt` must hold at least one token, all within the vocabulary;
// `model` must be a language model.
std::vector<Token> generate(const Model& model, std::span<const float> parameters,
                            std::span<const Token> prompt, const GenerateOptions& options, Rng rng);

}  // namespace fedge::learn
