// The SplitModel of a transformer with adapters; private to this folder.
#pragma once

#include <memory>

#include "learn/models/language/passes.h"
#include "learn/split/split_model.h"

namespace fedge::learn {

// `parts` must outlive it.
std::unique_ptr<SplitModel> make_transformer_split(const TransformerParts& parts);

}  // namespace fedge::learn
