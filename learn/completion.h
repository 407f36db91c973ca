// Scores how well a language model completes lines that it has not seen. Each held-out line is cut after its
// first ": "; the model's completion of the prompt is compared with the rest of the line (text/rouge.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/parallel.h"
#include "learn/model.h"
#include "learn/text/corpus.h"
#include "learn/text/rouge.h"
#include "learn/text/tokenizer.h"

namespace fedge::learn {

struct Completion {
  std::string prompt;     // including the ": "
  std::string reference;  // the rest of the line
};

// The first `per_group` held-out lines of each group that end within the text and have something before and
// after a ": ". If blocks are held out instead of lines, the first line of a block may lack its beginning.
std::vector<Completion> completions(std::span<const TextGroup> groups, std::size_t per_group);

// Returns the mean score of `lines`, which must not be empty. The model writes the likeliest token each time,
// until the line ends or the context's length is reached. `ranks`: number of ranks of the model's adapters
// that run. The result does not depend on parallel.width(). Cost: a forward pass over the context per token.
RougeScore score_completions(const Model& model, std::span<const float> parameters,
                             const Tokenizer& tokenizer, std::span<const Completion> lines,
                             Parallel& parallel, std::size_t ranks = SIZE_MAX);

}  // namespace fedge::learn
