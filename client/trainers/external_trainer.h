// ExternalTrainer: the user's own program trains for one run instead of the built-in trainer. It is started
// when the run begins, told about it, kept for its tasks, started again if it has died, and ended with the
// run. Whatever the program does costs the task in hand and is said; it never harms the daemon. begin() and
// train() belong to the worker thread and block it; leave() and shut_down() are for any thread. Memory while
// it trains: model, update and the program's answer, 12 bytes a parameter.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <stop_token>
#include <string>

#include "client/local_work.h"
#include "client/trainers/conversation.h"
#include "core/parameters.h"
#include "core/result.h"
#include "core/rng.h"
#include "learn/data/dataset.h"
#include "learn/spec.h"
#include "learn/trainer.h"

namespace fedge::client {

// What a trainer program cannot do, as an error: an objective or a part of the model that needs the built-in
// trainer.
Result<void> check_external(const learn::TrainingSpec& spec);

class ExternalTrainer {
 public:
  explicit ExternalTrainer(TrainerOptions options);
  ~ExternalTrainer();

  struct Run {
    ClientId client;
    std::string name;
    std::uint64_t seed = 0;
    learn::TaskSpec task;
    learn::DatasetInfo data;
    std::shared_ptr<const ParameterLayout> layout;
  };
  // Starts a program for this run, in place of one that is there, and waits until it is ready. Tries a few
  // times.
  Result<TrainerReady> begin(Run run);

  // One task of the run: writes update = trained - model, packed over the order's coverage.
  Result<learn::TrainingResult> train(const WorkOrder& order, std::span<const float> model,
                                      std::span<float> update);

  // What is under way ends at once, with an error, and nothing can be begun afterwards. Does not block.
  void leave() { leaving_.request_stop(); }
  // Leaves, and ends the program: up to two seconds.
  void shut_down();

 private:
  Result<TrainerReady> start(const std::stop_token& stop);
  Result<void> wait_for_turn(const std::stop_token& stop);
  Result<learn::TrainingResult> take(const TrainerFrame& frame, const WorkOrder& order,
                                     std::span<const float> model, std::span<float> update);
  Error lost(const Error& error);

  TrainerOptions options_;
  std::stop_source leaving_;
  std::mutex mutex_;  // for all below
  std::optional<Run> run_;
  std::string payload_header_;  // of the model as .safetensors
  std::unique_ptr<Conversation> conversation_;
  SampleCount samples_;
  std::uint64_t task_ = 0;
  std::uint32_t failures_ = 0;  // in a row
  Time started_{};              // the last time
};

}  // namespace fedge::client
