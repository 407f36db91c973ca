// Federated averaging over a workload, as the simulator does it: learn::Task::train on all threads, and
// updates accumulated exactly.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "aggregation/accumulator.h"
#include "aggregation/server_optimizers/server_optimizer.h"
#include "bench/training/workload.h"
#include "core/aligned_buffer.h"
#include "core/parallel.h"
#include "learn/data/dataset.h"
#include "learn/evaluation/evaluate.h"
#include "learn/trainer.h"

namespace fedge::bench {

class Federation {
 public:
  // `parallel` and `workload` must outlive it.
  Federation(const Workload& workload, Parallel& parallel);

  // Trains and averages the next round.
  Result<void> train_round();
  std::size_t rounds_done() const { return round_; }
  const std::vector<float>& model() const { return model_; }

 private:
  const Workload& workload_;
  Parallel& parallel_;
  std::vector<float> model_;
  std::vector<learn::Trainer> trainers_;       // one a thread
  std::vector<AlignedBuffer<float>> updates_;  // one a client of a round
  Coverage whole_;
  aggregation::Accumulator accumulator_;
  std::unique_ptr<aggregation::ServerOptimizer> optimizer_;
  std::vector<double> mean_;
  std::size_t round_ = 0;
};

}  // namespace fedge::bench
