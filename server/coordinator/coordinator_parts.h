// What a coordinator is made of before it listens: its locked data directory, its key, test data, model,
// stores, and the run's state and engine, both where they stood when the last coordinator here ended.
#pragma once

#include <memory>

#include "core/crypto/ed25519.h"
#include "core/platform/files.h"
#include "core/platform/thread_pool.h"
#include "learn/dataset.h"
#include "learn/model.h"
#include "protocol/chunks/chunk_store.h"
#include "server/coordinator/coordinator.h"
#include "server/coordinator/recovery.h"
#include "server/engine/run_engine.h"
#include "server/run_state.h"
#include "server/store/deferred_removals.h"
#include "server/store/run_store.h"

namespace fedge::server {

// In the order in which they must be destroyed last to first.
struct CoordinatorParts {
  DirectoryLock lock;
  SecretKey key;
  std::unique_ptr<learn::Model> model;
  std::shared_ptr<const learn::Dataset> test;
  std::unique_ptr<RunStore> store;
  RunNumber run;
  std::unique_ptr<DeferredRemovals> models;       // made here
  std::unique_ptr<protocol::ChunkStore> updates;  // clients'
  std::unique_ptr<ThreadPool> threads;
  std::unique_ptr<RunState> state;
  std::unique_ptr<RunEngine> engine;
  Recovered recovered;
};

// Opens the data directory (exclusively) and takes up the run that has not ended there, or begins this one.
// kRefused if the one there is another. Errors name the file or the key of the run file at fault.
Result<CoordinatorParts> open_coordinator(const CoordinatorOptions& options, const RunConfig& run);

}  // namespace fedge::server
