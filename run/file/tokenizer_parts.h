// The parts in which a coordinator gives a long tokenizer to clients (docs/PROTOCOL.md, "Tokenizers").
#pragma once

#include <cstddef>
#include <optional>

#include "protocol/messages.h"
#include "run/run_config.h"

namespace fedge::run {

// The number of parts; 0: clients find the tokenizer in the run's description, or need none.
std::size_t tokenizer_parts(const RunConfig& run);
// The part that a client asks for; nothing: there is none at this offset.
std::optional<protocol::TokenizerPart> tokenizer_part(const RunConfig& run,
                                                      const protocol::TokenizerRequest& asked);

}  // namespace fedge::run
