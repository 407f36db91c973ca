// RunParts: all that a coordinator opens before it executes a run. Test data, model, stores, and the run's
// state and engine as they were last.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <utility>

#include "core/platform/thread_pool.h"
#include "learn/data/dataset.h"
#include "learn/model.h"
#include "protocol/chunks/chunk_store.h"
#include "server/conductor/conductor.h"
#include "server/coordinator/recovery.h"
#include "server/live/run_watch.h"
#include "server/run_state.h"
#include "server/split/half_files.h"
#include "server/store/deferred_removals.h"
#include "server/store/run_store.h"

namespace fedge::server {

// The order of members matters: they are destroyed from last to first.
struct RunParts {
  RunRecord record;
  std::unique_ptr<learn::Model> model;
  std::shared_ptr<const learn::Dataset> test;
  std::unique_ptr<RunStore> store;                // separate database connection
  std::unique_ptr<DeferredRemovals> models;       // global models
  std::unique_ptr<protocol::ChunkStore> updates;  // clients' updates
  std::unique_ptr<ThreadPool> threads;
  std::unique_ptr<RunState> state;
  std::shared_ptr<RunWatch> watch = std::make_shared<RunWatch>();  // follows the conductor
  std::unique_ptr<Conductor> conductor;                            // to be taken over
  Recovered recovered;
  bool made_noise_key = false;  // noise.key was missing and was created
};

// Returns the run's file, read, and the model that it describes.
Result<std::pair<run::RunConfig, std::unique_ptr<learn::Model>>> model_of(const RunRecord& record);
// Where a run's models are while it has not ended, and models that were asked for meanwhile.
std::filesystem::path models_of(const std::filesystem::path& data_directory, RunNumber run);
std::filesystem::path asked_models_of(const std::filesystem::path& data_directory, RunNumber run);
// Checks that this machine can execute such a run. Errors name the file or the key at fault.
Result<void> check_run(const run::RunConfig& config);

// Reads the run's file, data and stores, and replays its journal. Slow; blocks only the calling thread.
// `threads` are for evaluation and aggregation.
Result<RunParts> open_run(const std::filesystem::path& data_directory, const RunRecord& record,
                          std::size_t threads);
// Where the coordinator keeps its halves of this run's updates (split training).
HalfFiles halves_of(const std::filesystem::path& data_directory, RunNumber run);
// Removes the chunk stores of a run whose results are written.
void remove_chunks(const std::filesystem::path& data_directory, RunNumber run);

}  // namespace fedge::server
