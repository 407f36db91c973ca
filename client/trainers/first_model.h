// Asks a trainer program for the model that a run with model.kind = "external" starts from.
#pragma once

#include <cstddef>
#include <vector>

#include "client/trainers/conversation.h"
#include "client/trainers/trainer_frames.h"
#include "core/result.h"

namespace fedge::client {

// Starts the program, asks it, and ends it. Returns the .safetensors file that it sent, whose tensors are
// checked. Memory: the model, of at most half of this machine's. Errors say what the program did.
Result<std::vector<std::byte>> ask_for_first_model(const TrainerOptions& options, TrainerHello hello);

}  // namespace fedge::client
