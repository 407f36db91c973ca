// ExternalTrainer: trains and evaluates for one run with the user's own program instead of the built-in
// trainer. Starts the program when the run begins, keeps it for the run's tasks, restarts it if it dies, and
// ends it with the run. A misbehaving program fails the current task with a reason; it never harms the
// daemon. The worker thread calls begin(), train() and evaluate(), which block. Any thread may call leave()
// and shut_down(). Memory while training: model, update and the program's answer, 12 bytes for each
// parameter.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "client/local/local_work.h"
#include "client/trainers/conversation.h"
#include "core/parameters.h"
#include "core/result.h"
#include "core/rng.h"
#include "learn/data/dataset.h"
#include "learn/evaluation/sums.h"
#include "learn/spec.h"
#include "learn/trainer.h"

namespace fedge::client {

class ExternalTrainer {
 public:
  explicit ExternalTrainer(TrainerOptions options);
  ~ExternalTrainer();

  // What one client of a simulation trains on, or evaluates with.
  struct VirtualSamples {
    SampleCount count;
    std::vector<std::uint32_t> numbers;  // in the data set's training samples; empty if they have a path
    std::string path;
    const char* of = nullptr;  // evaluation: which samples have these numbers, "training" or "test"
  };
  struct Run {
    ClientId client;
    std::string name;
    std::uint64_t seed = 0;
    learn::TaskSpec task;
    learn::DatasetInfo data;
    std::shared_ptr<const ParameterLayout> layout;
    learn::EvaluationSums::Shape sums;  // of an evaluation
    // In a simulation: the number of clients for which the program trains, and the samples of each, of which
    // it trains on this fraction. Otherwise 0 and empty.
    std::uint32_t clients = 0;
    std::function<VirtualSamples(ClientId client, double data_share)> samples_of{};
    std::function<VirtualSamples(ClientId client)> evaluated_by{};
  };
  // Starts a program for this run, replacing a running one, and waits until it is ready. Retries a few
  // times.
  Result<TrainerReady> begin(Run run);

  // Executes one task of the run: writes update = trained - model, packed over the order's coverage.
  Result<learn::TrainingResult> train(const WorkOrder& order, std::span<const float> model,
                                      std::span<float> update);

  // Evaluates the model on the samples of the order's client.
  Result<learn::EvaluationSums> evaluate(const WorkOrder& order, std::span<const float> model);
  // In a simulation: evaluates the model on samples that are no client's own.
  Result<learn::EvaluationSums> evaluate_on(const VirtualSamples& samples, RoundNumber round,
                                            std::span<const float> model);

  // Ends the current call with an error and refuses later ones. Does not block.
  void leave() { leaving_.request_stop(); }
  // Calls leave() and ends the program; takes up to two seconds.
  void shut_down();

 private:
  Result<TrainerReady> start(const std::stop_token& stop);
  Result<void> wait_for_turn(const std::stop_token& stop);
  Result<void> begin_task(const std::stop_token& stop);
  Result<TrainerFrame> answer(const Conversation::Waiting& waiting);
  Result<learn::EvaluationSums> ask(EvaluationQuestion question, SampleCount samples,
                                    const std::stop_token& stop, std::span<const float> model);
  Result<learn::EvaluationSums> count(SampleCount samples, bool all, const std::stop_token& stop);
  Result<learn::TrainingResult> take(const TrainerFrame& frame, const WorkOrder& order, SampleCount samples,
                                     std::span<const float> model, std::span<float> update);
  Error lost(const Error& error);

  TrainerOptions options_;
  std::stop_source leaving_;
  std::mutex mutex_;  // guards everything below
  std::optional<Run> run_;
  std::string payload_header_;  // the .safetensors header for the model
  std::unique_ptr<Conversation> conversation_;
  TrainerReady ready_;  // of the program's last start
  std::uint64_t task_ = 0;
  std::uint32_t failures_ = 0;  // in a row
  Time started_{};              // of the last start
};

}  // namespace fedge::client
