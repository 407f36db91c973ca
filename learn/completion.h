// How well a language model ends lines that it has never seen: held-out lines are cut behind their first
// ": ", and what it writes behind the first part is compared with the second (text/rouge.h).
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
  std::string prompt;     // with the ": "
  std::string reference;  // the rest of the line
};

// Of each group's held-out text the first `per_group` lines that end within it and have something on both
// sides of a ": ". Where blocks are held out in place of lines, the first of a block may lack its beginning.
std::vector<Completion> completions(std::span<const TextGroup> groups, std::size_t per_group);

// The mean of their scores; there is at least one. The model writes the likeliest token each time, until the
// line ends, at most as many as its context has. The same numbers whatever parallel.width() is. `ranks`: how
// many of the model's adapters run. Cost: a forward pass over the context for each token.
RougeScore score_completions(const Model& model, std::span<const float> parameters,
                             const Tokenizer& tokenizer, std::span<const Completion> lines,
                             Parallel& parallel, std::size_t ranks = SIZE_MAX);

}  // namespace fedge::learn
