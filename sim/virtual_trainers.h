// VirtualTrainers: trainer programs that train for all clients of a simulation. Each program serves one task
// at a time; which one serves a client does not affect the result if the program is a function of what it is
// sent. A program that fails, lies or hangs fails the task, as on a device.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "client/local_work.h"
#include "client/trainers/external_trainer.h"
#include "core/result.h"
#include "learn/task.h"
#include "run/run_config.h"

namespace fedge::sim {

class VirtualTrainers {
 public:
  // Starts `workers` programs and waits until they are ready. `task` must outlive the result. kUnsupported:
  // the run needs the built-in trainer, or a program could not know a client's samples.
  static Result<std::unique_ptr<VirtualTrainers>> start(const client::TrainerOptions& options,
                                                        std::size_t workers, const learn::Task& task,
                                                        const run::RunConfig& config);

  // One for each program; they may be called at the same time.
  std::vector<client::TrainElsewhere> each() const;

 private:
  std::vector<std::unique_ptr<client::ExternalTrainer>> trainers_;
};

}  // namespace fedge::sim
