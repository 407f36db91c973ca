// TrainingPool: executes local training for the simulator. A job is queued when a client starts. The first
// time a result is needed, queued jobs are computed in groups, earliest finish first, on all threads. A
// client that drops out earlier costs nothing. A result is a pure function of (model, client, round, memory,
// seed): grouping and threads do not affect it.
// Memory: one update for each computed job until it is released; with a spool, one for each thread.
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

// Buffers of released updates, for reuse. Any thread.
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
  protocol::Manifest shape;  // of the encoded update, without the hashes of its chunks
  std::shared_ptr<const aggregation::UpdateValues> values;  // in memory unless spooled
  std::optional<Error> failure;                             // if set, only the task is valid
  std::optional<Error> fault = {};                          // why the values are zeros that do not count
  std::vector<std::int64_t> sums = {};                      // of an evaluation or of statistics
};

// The updates that virtual clients have computed.
class VirtualUpdates {
 public:
  virtual ~VirtualUpdates() = default;
  // Returns the update of this task, or null.
  virtual const TrainedUpdate* find(ClientId client, TaskId task) const = 0;
  // Moves an update out; its values are null if there is none.
  virtual TrainedUpdate take(ClientId client) = 0;
  virtual void drop(ClientId client) = 0;
  // The track is retired.
  virtual void forget(TrackId track) = 0;
};

// StatisticsGiven is what a run with statistics tells its clients in a task.
struct StatisticsGiven {
  std::vector<float> edges;
  learn::Normalisation normalisation;
};

// The state from which clients train.
struct GlobalState {
  std::shared_ptr<const ParameterVector> model;
  std::shared_ptr<const ParameterVector> control;       // null without SCAFFOLD
  std::shared_ptr<const StatisticsGiven> statistics{};  // null if the run has none
};

// One client's task.
struct TrainingJob {
  TaskId task;
  double data_share = 1;
  Coverage coverage;
  RoundNumber last_round;  // the task whose memory it continues from
  GlobalState global;
  Time finish;
  std::uint64_t max_steps = 0;  // limit for partial work; 0: no limit
  bool flip_labels = false;     // poisoned client
};

class TrainingPool final : public VirtualUpdates {
 public:
  // `task` and `parallel` must outlive the pool; updates are cut into chunks of `chunk_size` bytes.
  // With `elsewhere`, training takes place there: as many at a time as it has members, or threads.
  TrainingPool(const learn::Task& task, const run::RunConfig& config, Parallel& parallel,
               std::vector<client::Elsewhere> elsewhere = {});
  // Stores later updates in this store, which must outlive the pool, instead of in memory.
  void spool_to(protocol::ChunkStore& store) { spool_ = &store; }

  // Queues a job. Does nothing if the client has this task's job already.
  void enqueue(ClientId client, TrainingJob job);
  // Computes the job if necessary. The client must have a job; its update stays until taken or dropped. An
  // error comes from the spool: this machine could not store an update.
  Result<const TrainedUpdate*> result(ClientId client);
  // True if the client has this task's job, computed or not.
  bool has(ClientId client, TaskId task) const;
  const TrainedUpdate* find(ClientId client, TaskId task) const override;
  TrainedUpdate take(ClientId client) override;
  void drop(ClientId client) override;
  // Drops the clients' memory of this track's tasks.
  void forget(TrackId track) override;
  // Replaces the values of a computed update. Errors are those of the spool or of `edit`.
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
  std::vector<client::LocalWork> workers_;  // one a thread, or for each place elsewhere
  std::uint32_t chunk_size_;
  Digest layout_;
  std::optional<std::uint64_t> noise_seed_;  // set if clients noise their updates
  std::map<ClientId, TrainingJob> queued_;
  std::map<ClientId, TrainedUpdate> computed_;
  std::map<std::pair<ClientId, TrackId>, client::VolatileMemory>
      memories_;  // only if clients keep memory between tasks
  protocol::ChunkStore* spool_ = nullptr;
  std::shared_ptr<SpareBuffers> spare_ = std::make_shared<SpareBuffers>();
};

}  // namespace fedge::sim
