// What leading a run takes before anybody hears of it: test data, model, stores, and the run's state and
// engine, where they stood when it was last led.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <vector>

#include "core/platform/thread_pool.h"
#include "learn/data/dataset.h"
#include "learn/model.h"
#include "protocol/chunks/chunk_store.h"
#include "server/coordinator/recovery.h"
#include "server/engine/run_engine.h"
#include "server/run_state.h"
#include "server/store/deferred_removals.h"
#include "server/store/run_store.h"

namespace fedge::server {

// In the order in which they must be destroyed last to first.
struct RunParts {
  RunRecord record;
  std::unique_ptr<learn::Model> model;
  std::shared_ptr<const learn::Dataset> test;
  std::vector<std::uint32_t> partition;      // samples of each client; empty: the training set is not here
  std::unique_ptr<RunStore> store;           // a connection of its own
  std::unique_ptr<DeferredRemovals> models;  // made here
  std::unique_ptr<protocol::ChunkStore> updates;  // clients'
  std::unique_ptr<ThreadPool> threads;
  std::unique_ptr<RunState> state;
  std::unique_ptr<RunEngine> engine;
  Recovered recovered;
  bool made_noise_key = false;  // there was none
};

// Whether this machine has what it takes to lead such a run. Errors name the file or the key at fault.
Result<void> check_run(const run::RunConfig& config);

// Reads the run's file, data and stores, and steps through its journal: takes a while, and no thread but the
// caller's. `threads` are for evaluation and aggregation.
Result<RunParts> open_run(const std::filesystem::path& data_directory, const RunRecord& record,
                          std::size_t threads);
// Once the run is over and its results are written.
void remove_chunks(const std::filesystem::path& data_directory, RunNumber run);

}  // namespace fedge::server
