// Trainer: local training of one client, E epochs of mini-batch SGD or AdamW in place on a parameter vector:
// of the whole model, of a coverage of it, or of a sub-model. Single-threaded and deterministic; a simulator
// keeps one per thread and reuses it for all clients.
// Memory: scratch of one batch for each network trained; with momentum 8 bytes a parameter, with AdamW 12,
// with another objective than plain up to 8.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <stop_token>
#include <vector>

#include "core/aligned_buffer.h"
#include "core/coverage.h"
#include "core/ids.h"
#include "core/rng.h"
#include "learn/data/dataset.h"
#include "learn/model.h"
#include "learn/spec.h"
#include "learn/submodel.h"

namespace fedge::learn {

struct TrainingResult {
  SampleCount samples;  // those that were to be trained on: the update's weight, however many steps were made
  std::uint64_t steps = 0;  // optimizer steps
  double mean_loss = 0;     // cross-entropy over the steps, each taken before its step
  // Root of the mean squared loss over the samples of the steps, each with the model as it was before its
  // step.
  double rms_loss = 0;
  double wanted_share =
      0;  // of all ranks of the adapters, what the client gives itself from now on; 0: as before
};

// What one training does beside the run's spec. Everything is lent for the call.
struct TrainingOptions {
  // Whole model: what moves; everything else keeps its bits. Null: all.
  const Coverage* coverage = nullptr;
  // The parameters are those of the sub-model with these widths. Null: the whole model's.
  const Widths* slice = nullptr;
  // With slice: each step trains the first units of a network drawn evenly from these, none wider than the
  // slice (ordered dropout; Horvath et al., FjORD, NeurIPS 2021, section 3.1), from rng.fork("width").
  // Empty: all of the slice.
  std::span<const Widths> nested;
  // Adapters: how many ranks run; more than there are: all.
  std::size_t ranks = SIZE_MAX;
  // Ranks below that at which they are to work cut off, ascending, for the spec's nesting; drawn from
  // rng.fork("nest").
  std::span<const std::size_t> truncations;
  // Added to each gradient: c - c_k of SCAFFOLD, of the parameters' size; empty: nothing.
  std::span<const float> correction;
  bool flip_labels = false;            // as if each label were classes - 1 - label
  std::uint64_t max_steps = 0;         // 0: no limit but the epochs
  RoundNumber round = RoundNumber(1);  // of the run: where its schedule stands
  // Called after every step, with the loss before it.
  std::function<void(std::uint64_t steps, float loss)> report;
  // Both end training between two steps, with the steps made so far; finish after the first step at the
  // earliest.
  std::stop_token stop;    // give up: nobody wants the result
  std::stop_token finish;  // that is enough: the result counts (FedProx's partial work)
};

class Trainer {
 public:
  // `model` must outlive the trainer.
  Trainer(const Model& model, const TrainingSpec& spec);

  // Trains `parameters` in place on these samples, shuffled anew each epoch from rng.fork("epoch", e);
  // the last batch of an epoch may be smaller. `samples` may be empty: nothing happens. The proximal
  // objective pulls towards what `parameters` are at the beginning. Without momentum, pull and correction,
  // and with a coverage of whole rows, a step stores no gradient.
  TrainingResult train(std::span<float> parameters, const Dataset& data,
                       std::span<const std::uint32_t> samples, const Rng& rng,
                       const TrainingOptions& options = {});

  // The whole model's size in floats; made at first use, not touched by train().
  std::span<float> scratch();
  // Of all training of the whole model so far, sub-models apart.
  const Products& products() const { return workspace_->products; }

 private:
  struct Nested {
    const Submodels::Entry* network;
    Coverage slice;  // of `parameters`
    std::size_t size;
  };
  // What all steps of one training share.
  struct Plan {
    const Model* model;  // of `parameters`
    Workspace* workspace;
    Coverage moved;
    std::vector<Nested> nested;
    Rng widths;
    std::vector<std::size_t> truncations;  // with the full rank; empty: no nesting
    std::vector<std::uint64_t> taken;      // steps that moved the ranks below each of them and above the last
    Rng draws;                             // of them
    bool pulled;                           // towards start_
    bool in_place;                         // no gradient is stored
    float rate;                            // of the step in hand
    std::uint64_t step = 0;                // of those begun
    std::uint64_t moves = 0;               // of those, how many moved what is about to be moved
  };

  Plan make_plan(std::span<const float> parameters, const Rng& rng, const TrainingOptions& options);
  // Of the step that comes after so many of all this training will make.
  float rate_at(const RoundNumber& round, std::uint64_t step, std::uint64_t steps) const;
  // One optimizer step; the loss before it.
  BatchLoss step(std::span<float> parameters, const Batch& batch, std::span<const float> correction,
                 Plan& plan);
  BatchLoss nested_step(std::span<float> parameters, const Batch& batch, std::span<const float> correction,
                        Plan& plan);
  // The step's gradient into gradient_, the mean over the ranks that it is cut off at; what moves goes no
  // further than the highest of them.
  BatchLoss nested_ranks_gradient(std::span<const float> parameters, const Batch& batch, Plan& plan,
                                  std::size_t& highest);
  // Of a client with so many ranks, in a step that moves none beyond `highest`.
  void add_pruning_gradient(std::span<const float> parameters, std::size_t ranks, std::size_t highest);
  // Moves what moves of this part along gradient_.
  void descend_within(const Range& part, std::span<float> parameters, std::span<const float> correction,
                      const Plan& plan);
  // Moves these parameters along their gradients.
  void descend(const Range& range, float* gradient, std::span<float> parameters,
               std::span<const float> correction, const Plan& plan);
  void adam_step(const Range& range, const float* gradient, std::span<float> parameters, const Plan& plan);

  const Model& model_;
  TrainingSpec spec_;
  std::unique_ptr<Workspace> workspace_;
  Submodels submodels_;
  BatchBuffer buffer_;
  std::vector<std::uint32_t> order_;
  AlignedBuffer<float> gradient_;  // those below only as far as they are needed
  AlignedBuffer<float> velocity_;  // momentum's, or Adam's first moment
  AlignedBuffer<float> squares_;   // Adam's second moment
  AlignedBuffer<float> start_;
  AlignedBuffer<float> mean_;  // of the gradients of nested ranks
  AlignedBuffer<float> thin_;  // parameters of a nested network
  AlignedBuffer<float> scratch_;
};

}  // namespace fedge::learn
