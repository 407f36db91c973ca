// Models that only a trainer program can compute (model.kind = "external"): Fedge knows the names and shapes
// of their tensors, and aggregates, stores and distributes them like any other model. A call that would
// compute one throws a PartFailure (core/config/own_part.h).
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "core/config/reader.h"
#include "core/parameters.h"
#include "core/result.h"
#include "learn/model.h"
#include "learn/spec.h"

namespace fedge::learn {

// Reads model.tensors into `spec`.
ModelFactory read_external(config::Reader& section, ModelSpec& spec);

// Whether only a trainer program can compute models of this spec.
bool is_external(const ModelSpec& spec);

// kUnsupported if the run needs the built-in trainer: an objective or a part of the model that a trainer
// program cannot train.
Result<void> check_program_trains(const TrainingSpec& spec);

// The tensors of a .safetensors file as model.tensors lists them, for example "conv1.weight [16, 3, 3, 3]".
// Errors are those of reading the file's header.
Result<std::vector<std::string>> tensor_texts(const std::filesystem::path& file);

}  // namespace fedge::learn
