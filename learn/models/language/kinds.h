// The model kinds "transformer" and "llama": their options in [model], and their construction.
#pragma once

#include "core/config/reader.h"
#include "learn/spec.h"

namespace fedge::learn {

ModelFactory read_transformer(config::Reader& section, ModelSpec& spec);
ModelFactory read_llama(config::Reader& section, ModelSpec& spec);

// The layers of a block that can have adapters.
const std::vector<std::string>& adapter_targets(bool llama);

}  // namespace fedge::learn
