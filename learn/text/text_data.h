// A corpus as a Dataset: each group's text in tokens, cut into windows that follow one another, the group's
// number as the label. 2 bytes a token.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/result.h"
#include "learn/data/dataset.h"
#include "learn/spec.h"
#include "learn/text/tokenizer.h"

namespace fedge::learn {

enum class TextSplit { kTrain, kHeldOut };

// kCorrupt for a table that is none; its messages name data.tokenizer.
Result<Tokenizer> make_tokenizer(const TokenizerSpec& spec);

// All groups' samples, in the groups' order; of what is held out, spec.test_windows a group. Errors are
// load_corpus's; kInvalid if there are more than 256 groups.
Result<Dataset> load_text(const DataSpec& spec, TextSplit split);

// These samples (ascending) of a text and nothing else of it.
Dataset select_windows(const Dataset& data, std::span<const std::uint32_t> samples);

}  // namespace fedge::learn
