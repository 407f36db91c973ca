// TrainingPool: executes local training for the simulator. A job is queued when a client starts. Idle threads
// train queued jobs in the background, those first whose results are needed first; result() waits for a job
// or trains it itself. A client that drops out before its turn costs nothing. A result is a pure function of
// (model, client, round, memory, seed): order and threads do not affect it.
// With ranks, some jobs are carried out by other processes.
// Memory: one update for each result that was asked for, until it is released, and the few that are ahead;
// with a spool, one for each thread. Thread-safe inside; its functions are for one thread.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <exception>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "aggregation/aggregators/aggregator.h"
#include "client/local/local_work.h"
#include "core/aligned_buffer.h"
#include "core/ids.h"
#include "core/parallel.h"
#include "core/parameters.h"
#include "core/time.h"
#include "learn/task.h"
#include "protocol/chunks/chunk_store.h"
#include "run/run_config.h"
#include "sim/checkpoint/run_log.h"
#include "sim/ranks/shared_work.h"
#include "sim/training/client_states.h"
#include "sim/training/trained_update.h"
#include "sim/training/update_buffers.h"

namespace fedge::sim {

// StatisticsGiven is what a run with statistics tells its clients in a task.
struct StatisticsGiven {
  std::vector<float> edges;
  learn::Normalisation normalisation;
};

// The state from which clients train. Empty once it is released: devices that are switched off may name it
// for many rounds. While a run's events are repeated, it has no models.
struct GlobalState {
  std::shared_ptr<const ParameterVector> model;
  std::shared_ptr<const ParameterVector> control;       // null without SCAFFOLD
  std::shared_ptr<const StatisticsGiven> statistics{};  // null if the run has none
  std::uint64_t version = 0;                            // number in the run; 0: it has none
  bool released = false;
};
using SharedState = std::shared_ptr<GlobalState>;
// States with a model that tasks under way may still need, by version.
using LiveStates = std::map<std::uint64_t, GlobalState>;

// The updates that virtual clients have computed.
class VirtualUpdates {
 public:
  virtual ~VirtualUpdates() = default;
  // Whether the client has this task's update, computed or not.
  virtual bool has(ClientId client, TaskId task) const = 0;
  // Returns the update of this task, computed now if it was not; null if the client has dropped it. An error
  // is this machine's: it could not store an update.
  virtual Result<const TrainedUpdate*> arrived(ClientId client, TaskId task) = 0;
  // Moves an update out; its values are null if there is none.
  virtual TrainedUpdate take(ClientId client) = 0;
  virtual void drop(ClientId client) = 0;
  // The track is retired.
  virtual void forget(TrackId track) = 0;
  // No task needs an update that was trained from this state any more: frees its models, and counts the
  // updates that were not asked for as dropped.
  virtual void release(const SharedState& state) = 0;
};

// One client's task.
struct TrainingJob {
  TaskId task;
  double data_share = 1;
  double kept = 0;  // as in client::WorkOrder
  Coverage coverage;
  RoundNumber last_round;  // the task whose memory it continues from
  SharedState global;
  Time needed;                  // when its result is needed: jobs are computed in this order
  std::uint64_t max_steps = 0;  // limit for partial work; 0: no limit
  bool flip_labels = false;     // poisoned client
};

class TrainingPool final : public VirtualUpdates, private Background {
 public:
  // `task` and `parallel` must outlive the pool; updates are cut into chunks of `chunk_size` bytes.
  // With `elsewhere`, training takes place there: as many at a time as it has members, or threads.
  TrainingPool(const learn::Task& task, const run::RunConfig& config, Parallel& parallel,
               std::vector<client::Elsewhere> elsewhere = {});
  ~TrainingPool() override;
  TrainingPool(const TrainingPool&) = delete;
  TrainingPool& operator=(const TrainingPool&) = delete;
  // Stores later updates in this store, which must outlive the pool, instead of in memory.
  void spool_to(protocol::ChunkStore& store);
  // What clients keep between tasks is in memory up to this many bytes, and beyond that in a file without a
  // name in this directory.
  void spill_to(const std::filesystem::path& directory, std::size_t budget);
  // Carries out only this rank's share of the jobs. `shared` must outlive the pool.
  void share(SharedWork& shared) { shared_ = &shared; }

  // --- checkpoints ---
  // Records results in this log, or takes them from it. The log must outlive the pool.
  void log_to(RunLog& log) { log_ = &log; }
  // Keeps what clients keep between tasks in a file of this name (ClientStates::keep_in()).
  Result<void> keep_in(const std::filesystem::path& file, std::size_t budget) {
    return states_.keep_in(file, budget);
  }
  ClientStates& client_states() { return states_; }
  // Whether clients keep something between tasks.
  bool remembers() const { return workers_.front().remembers(); }
  void add_live(LiveStates& states) const;
  // The log has been replayed: gives the jobs that are left their models.
  void go_on(const LiveStates& states);

  // Queues a job. Does nothing if the client has this task's job already.
  void enqueue(ClientId client, TrainingJob job);
  // Returns the offer of the client's job as far as it is known before the training, or nothing
  // (client::LocalWork::expected).
  std::optional<protocol::UpdateOffer> expected(ClientId client) const;
  // Computes the job if necessary. The client must have a job; its update stays until taken or dropped. An
  // error is this machine's: it could not store an update or a client's state.
  Result<const TrainedUpdate*> result(ClientId client);
  bool has(ClientId client, TaskId task) const override;
  Result<const TrainedUpdate*> arrived(ClientId client, TaskId task) override;
  TrainedUpdate take(ClientId client) override;
  void drop(ClientId client) override;
  // The client is disconnected: its result may never be needed. No thread trains it in the background, and if
  // one has, it does not count as ahead.
  void postpone(ClientId client);
  // Drops the clients' memory of this track's tasks.
  void forget(TrackId track) override;
  void release(const SharedState& state) override;
  // Replaces the values of a computed update. Errors are those of the spool or of `edit`.
  Result<void> change(ClientId client, const std::function<Result<void>(std::span<float>)>& edit);

 private:
  enum class Stage { kQueued, kRunning, kComputed };
  struct Work {
    ClientId client;
    TrainingJob job;
    SharedWork::Place place = {};
    Stage stage = Stage::kQueued;
    bool asked = false;    // by result(), or postponed: it is not ahead
    bool dropped = false;  // while it was running: its state is not kept
    client::ClientMemory memory = {};
    TrainedUpdate outcome = {};
    std::optional<Error> fault = {};  // of this machine
    std::exception_ptr failure = {};
  };
  using Lock = std::unique_lock<std::mutex>;
  bool work() override;
  bool may_begin() const;
  void compute_first(Lock& lock);
  void set_asked(Work& work);
  void compute(Lock& lock, const std::shared_ptr<Work>& work);
  static client::WorkOrder order_of(const Work& work, const GlobalState& global);
  void carry_out(Work& work, const GlobalState& global, client::LocalWork& worker);
  Result<std::shared_ptr<const aggregation::UpdateValues>> keep(AlignedBuffer<float> values,
                                                                const Coverage& coverage) const;
  // Waits for the outcome of a job elsewhere, and carries out jobs meanwhile.
  Result<void> fetch(Lock& lock, const std::shared_ptr<Work>& work);
  // Fills in what the outcome of another process lacks.
  void complete(Work& work, TrainedUpdate outcome) const;
  // The result of the client's job, from the log.
  Result<const TrainedUpdate*> recall(Work& work);

  const learn::Task& task_;
  Parallel& parallel_;
  std::deque<client::LocalWork> workers_;  // one a thread, or for each place elsewhere
  std::uint32_t chunk_size_;
  Digest layout_;
  std::optional<std::uint64_t> noise_seed_;  // set if clients noise their updates
  aggregation::FixedPoint fixed_point_;
  bool masked_;  // nobody inspects the values of a masked update
  std::size_t most_ahead_;
  protocol::ChunkStore* spool_ = nullptr;
  std::shared_ptr<SpareBuffers> spare_ = std::make_shared<SpareBuffers>();
  ClientStates states_;           // of clients that keep some between tasks
  RunLog* log_ = nullptr;         // null: there is none
  SharedWork* shared_ = nullptr;  // null: all jobs are carried out here

  // Guards all members below, and what a SharedState contains; not the works that are running or computed.
  mutable std::mutex mutex_;
  std::condition_variable changed_;  // a work is computed
  std::map<ClientId, std::shared_ptr<Work>> works_;
  std::set<std::pair<Time, ClientId>> queue_;  // for the background, by the time when the result is needed
  std::size_t ahead_ = 0;                      // works running or computed that nobody has asked for
  std::vector<client::LocalWork*> free_;       // workers
};

}  // namespace fedge::sim
