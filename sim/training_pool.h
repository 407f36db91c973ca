// TrainingPool: carries out local training for the simulator. Jobs are queued when a client starts
// and computed in groups, earliest finish first, on all threads, the first time one of them is
// needed; a client that drops out before that costs nothing. A job's result is a pure function of
// (model, client, round, memory, seed), so neither grouping nor threads can be seen in it.
// Memory: one update for each job computed and not yet let go of; with a spool, one for each thread.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "aggregation/aggregators/aggregator.h"
#include "client/local_work.h"
#include "core/aligned_buffer.h"
#include "core/ids.h"
#include "core/parallel.h"
#include "core/parameters.h"
#include "core/time.h"
#include "learn/task.h"
#include "protocol/chunks/chunk_store.h"
#include "run/run_config.h"

namespace fedge::sim {

// Memory of updates that are gone, for the next ones. For any thread.
class SpareBuffers {
 public:
  // Empty if there is none.
  AlignedBuffer<float> take();
  void give(AlignedBuffer<float> buffer);

 private:
  std::mutex mutex_;
  std::vector<AlignedBuffer<float>> buffers_;
};

struct TrainedUpdate {
  TaskId task;
  Coverage coverage;
  learn::TrainingResult training;
  double norm = 0;
  protocol::Manifest shape;  // of what travels, without the hashes of its chunks
  std::shared_ptr<const aggregation::UpdateValues> values;  // in memory unless they are spooled
  std::optional<Error> failure;                             // instead of everything above but the task
  std::optional<Error> fault = {};                          // why the values are zeros that count for nothing
};

// What clients are given to train from.
struct GlobalState {
  std::shared_ptr<const ParameterVector> model;
  std::shared_ptr<const ParameterVector> control;  // null but for SCAFFOLD
};

// One client's task.
struct TrainingJob {
  TaskId task;
  double data_share = 1;
  Coverage coverage;
  RoundNumber last_round;  // whose memory it goes on from
  GlobalState global;
  Time finish;
  std::uint64_t max_steps = 0;  // partial work; 0: to the end
  bool flip_labels = false;     // a poisoned client's
};

class TrainingPool {
 public:
  // `task` and `parallel` must outlive the pool; updates are cut into chunks of `chunk_size` bytes.
  TrainingPool(const learn::Task& task, const run::RunConfig& config, Parallel& parallel);
  // From now on updates lie in this store, which must outlive the pool, instead of in memory.
  void spool_to(protocol::ChunkStore& store) { spool_ = &store; }

  // Nothing happens if the client has this task's job already.
  void enqueue(ClientId client, TrainingJob job);
  // Computes the job if need be. The client must have a job; its update stays until taken or dropped. The
  // error is the spool's: this machine could not store an update.
  Result<const TrainedUpdate*> result(ClientId client);
  // Whether the client has this task's job, computed or not.
  bool has(ClientId client, TaskId task) const;
  // The computed update of this task, or null.
  const TrainedUpdate* find(ClientId client, TaskId task) const;
  // Hands a computed update over; without one its values are null.
  TrainedUpdate take(ClientId client);
  void drop(ClientId client);
  // What clients remember of this track's tasks is of no use any more.
  void forget(TrackId track);
  // Replaces the values of a computed update. The error is the spool's or that of `edit`.
  Result<void> change(ClientId client, const std::function<Result<void>(std::span<float>)>& edit);

 private:
  struct Work {
    ClientId client;
    TrainingJob job;
    client::ClientMemory memory;
    TrainedUpdate outcome;
    std::optional<Error> fault;  // of the spool
  };
  Result<void> compute_group(ClientId needed);
  Work begin(ClientId client);
  void carry_out(Work& work, client::LocalWork& worker) const;
  Result<std::shared_ptr<const aggregation::UpdateValues>> keep(AlignedBuffer<float> values,
                                                                const protocol::Manifest& shape) const;

  const learn::Task& task_;
  Parallel& parallel_;
  std::vector<client::LocalWork> workers_;  // one a thread
  std::uint32_t chunk_size_;
  Digest layout_;
  std::optional<std::uint64_t> noise_seed_;  // where clients noise their updates
  std::map<ClientId, TrainingJob> queued_;
  std::map<ClientId, TrainedUpdate> computed_;
  std::map<std::pair<ClientId, TrackId>, client::VolatileMemory>
      memories_;  // only if clients remember anything
  protocol::ChunkStore* spool_ = nullptr;
  std::shared_ptr<SpareBuffers> spare_ = std::make_shared<SpareBuffers>();
};

}  // namespace fedge::sim
