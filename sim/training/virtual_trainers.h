// VirtualTrainers: trainer programs that train and evaluate for all clients of a simulation. Each program
// serves one task at a time; which one serves a client does not affect the result if the program is a
// function of what it is sent. A program that fails, lies or hangs fails the task, as on a device.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "client/local/local_work.h"
#include "client/trainers/external_trainer.h"
#include "core/result.h"
#include "learn/data/dataset.h"
#include "learn/evaluation/evaluate.h"
#include "learn/task.h"
#include "run/run_config.h"

namespace fedge::sim {

class VirtualTrainers {
 public:
  // Starts `workers` programs and waits until they are ready. `task` must outlive the result. `test`: see
  // evaluate(); null if it is never called. kUnsupported:
  // the run needs the built-in trainer, or a program could not know a client's samples.
  static Result<std::unique_ptr<VirtualTrainers>> start(const client::TrainerOptions& options,
                                                        std::size_t workers, const learn::Task& task,
                                                        const run::RunConfig& config,
                                                        const learn::Dataset* test);

  // Evaluates a model on the samples of `test`, those on which the coordinator of this run would evaluate it.
  // A program that fails gets a second attempt.
  Result<learn::Evaluation> evaluate(std::span<const float> model, RoundNumber round) const;
  // One for each program; they may be called at the same time.
  std::vector<client::Elsewhere> each() const;

 private:
  std::vector<std::unique_ptr<client::ExternalTrainer>> trainers_;
  client::ExternalTrainer::VirtualSamples test_;
  std::vector<float> scale_;  // of the test samples' values
  bool evaluates_ = false;    // the programs evaluate also clients' own samples: no other can
};

}  // namespace fedge::sim
