// TrainingPool: carries out local training for the simulator. Jobs are queued when a client starts
// and computed in groups, earliest finish first, on all threads, the first time one of them is
// needed; a client that drops out before that costs nothing. A job's result is a pure function of
// (model, client, round, seed), so neither grouping nor threads can be seen in it.
// Memory: one update for each job computed and not yet taken.
#pragma once

#include <algorithm>
#include <cstddef>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "aggregation/aggregators/aggregator.h"
#include "core/aligned_buffer.h"
#include "core/ids.h"
#include "core/parallel.h"
#include "core/parameters.h"
#include "core/time.h"
#include "learn/task.h"

namespace fedge::sim {

// An update held in memory.
struct MemoryValues final : aggregation::UpdateValues {
  explicit MemoryValues(AlignedBuffer<float> values) : buffer(std::move(values)) {}
  std::span<const float> in_memory() const override { return buffer.span(); }
  Result<void> read(std::size_t first, std::span<float> out) const override {
    std::copy_n(buffer.data() + first, out.size(), out.data());
    return {};
  }
  AlignedBuffer<float> buffer;
};

struct TrainedUpdate {
  RoundNumber round;
  learn::TrainingResult result;
  std::shared_ptr<MemoryValues> values;
};

class TrainingPool {
 public:
  // Both must outlive the pool.
  TrainingPool(const learn::Task& task, Parallel& parallel);

  // Nothing happens if the client has this job already.
  void enqueue(ClientId client, RoundNumber round, std::shared_ptr<const ParameterVector> model, Time finish);
  // Computes the job if need be. The client must have a job; its update stays until taken or dropped.
  const learn::TrainingResult& result(ClientId client);
  // Whether the client has a job of this round, computed or not.
  bool has(ClientId client, RoundNumber round) const;
  // The computed update of this round, or null.
  const TrainedUpdate* find(ClientId client, RoundNumber round) const;
  // Hands the update over, or nothing if there is none.
  std::shared_ptr<MemoryValues> take(ClientId client);
  void drop(ClientId client);
  // Returns an update's memory for reuse, unless somebody still holds it.
  void recycle(std::shared_ptr<MemoryValues> values);

 private:
  struct Job {
    RoundNumber round;
    std::shared_ptr<const ParameterVector> model;
    Time finish;
  };
  void compute_group(ClientId needed);

  const learn::Task& task_;
  Parallel& parallel_;
  std::vector<learn::Trainer> trainers_;  // one a thread
  std::map<ClientId, Job> queued_;
  std::map<ClientId, TrainedUpdate> computed_;
  std::vector<std::shared_ptr<MemoryValues>> spare_;
};

}  // namespace fedge::sim
