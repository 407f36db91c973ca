// Trainer: local training of one client, E epochs of mini-batch SGD in place on a parameter vector.
// Single-threaded and deterministic; a simulator keeps one per thread and reuses it for all clients.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <stop_token>

#include "core/aligned_buffer.h"
#include "core/ids.h"
#include "core/rng.h"
#include "learn/dataset.h"
#include "learn/model.h"
#include "learn/spec.h"

namespace fedge::learn {

struct TrainingResult {
  SampleCount samples;      // distinct samples trained on: the update's weight
  std::uint64_t steps = 0;  // optimizer steps
  double mean_loss = 0;     // over the steps, each loss taken before its step
};

class Trainer {
 public:
  // `model` must outlive the trainer.
  Trainer(const Model& model, const TrainingSpec& spec);

  // Trains `parameters` in place on these samples, shuffled anew each epoch from rng.fork("epoch", e);
  // the last batch of an epoch may be smaller. `samples` may be empty: nothing happens. A request to
  // stop ends it between two steps, with the steps made so far.
  TrainingResult train(std::span<float> parameters, const Dataset& data,
                       std::span<const std::uint32_t> samples, const Rng& rng,
                       const std::stop_token& stop = {});

 private:
  // One optimizer step on these samples; returns the loss before it.
  float step(std::span<float> parameters, const Dataset& data, std::span<const std::uint32_t> samples);

  const Model& model_;
  TrainingSpec spec_;
  std::unique_ptr<Workspace> workspace_;
  AlignedBuffer<float> batch_inputs_;
  std::vector<std::uint8_t> batch_labels_;
  std::vector<std::uint32_t> order_;
  AlignedBuffer<float> gradient_;  // only with momentum
  AlignedBuffer<float> velocity_;
};

}  // namespace fedge::learn
