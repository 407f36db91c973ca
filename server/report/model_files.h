// ModelFiles: the models of earlier rounds in a run's results directory (run.keep_models), and what the file
// of a model says about its run.
//
//   models/round-000012.safetensors             the model after round 12
//   models/round-000012-HASH.safetensors        that of a further track; HASH as in tracks/HASH.safetensors
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/result.h"
#include "run/run_config.h"
#include "server/report/final_model.h"

namespace fedge::server {

// Returns the first 128 bits of the hash of the excluded clients' names, so that any names give a short,
// valid file name.
std::string file_name(const TrackDescription& track);

// Keys of a model file's metadata.
inline constexpr const char* kVersionMetadata = "fedge_version";
inline constexpr const char* kFailureMetadata = "failure";

// A model of a run, for its file.
struct ModelFacts {
  const run::RunConfig& config;
  std::uint64_t round;
  std::string version = {};  // of the program; empty: not said
  std::string failure = {};  // why the run failed; empty: it did not
};
std::map<std::string, std::string> model_metadata(const ModelFacts& facts, const FinalModel& model);
// The same without the hash of the model. `track`: null in a run without tracks.
std::map<std::string, std::string> run_metadata(const ModelFacts& facts, const TrackDescription* track);

// Whether the run keeps the model of this round.
bool keeps_model(const run::RunConfig& config, std::uint64_t round);
// Writes the models of the round, the first of which is the run's main model, and removes those of the oldest
// rounds beyond run.keep_models. kResource: there is no disk space, and the call may be repeated.
Result<void> keep_models(const std::filesystem::path& results, const ModelFacts& facts,
                         std::span<const FinalModel> models);
// Returns the rounds whose models are kept, ascending.
std::vector<std::uint64_t> kept_rounds(const std::filesystem::path& results);
// Returns the file of a kept model; of a track with `track`, else of the run's main model.
std::filesystem::path kept_model(const std::filesystem::path& results, std::uint64_t round,
                                 const std::optional<TrackDescription>& track = {});
// Removes the models of rounds after this one: the run continues from there.
void remove_models_after(const std::filesystem::path& results, std::uint64_t round);

}  // namespace fedge::server
