// The first model of a run with model.kind = "external" whose run file names none: the trainer program makes
// it.
#pragma once

#include <filesystem>

#include "client/trainers/conversation.h"
#include "core/config/document.h"
#include "core/result.h"
#include "run/run_config.h"

namespace fedge::sim {

// Whether the tensors of the run's model are still unknown.
bool lacks_first_model(const run::RunConfig& config);

// Asks the program for its first model, writes it to `file`, and returns the run file with this base.
// `config` is the run file as read. Errors say what the program did, or why the file cannot be written.
Result<config::Document> add_first_model(config::Document run_file, const run::RunConfig& config,
                                         const client::TrainerOptions& program,
                                         const std::filesystem::path& file);

}  // namespace fedge::sim
