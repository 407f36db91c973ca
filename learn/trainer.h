// Trainer: local training of one client. It runs epochs of mini-batch SGD or AdamW in place on the parameters
// of the whole model, of a coverage of it, or of a sub-model. Single-threaded and deterministic; a simulator
// reuses one Trainer per thread for all clients. Memory: scratch of one batch for each network trained; for
// each parameter that is trained 4 bytes, with momentum 8, with AdamW 12, with another objective than plain
// up to 8 more.
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
#include "learn/objectives/contrast.h"
#include "learn/objectives/objective.h"
#include "learn/optimizers/optimizer.h"
#include "learn/spec.h"
#include "learn/split/lower_half.h"
#include "learn/split/upper_half.h"
#include "learn/submodel.h"

namespace fedge::learn {

struct TrainingResult {
  SampleCount samples;      // samples to train on: the update's weight, whatever the number of steps
  std::uint64_t steps = 0;  // optimizer steps
  double mean_loss = 0;     // mean over the steps of the batch's cross-entropy before the step
  // Root of the mean squared loss over the samples of all steps, each with the model before its step.
  double rms_loss = 0;
  double wanted_share = 0;  // fraction of all adapter ranks wanted in later rounds; 0: no change
  // Split training: distance correlation of the embeddings and the activations at the cut, of some tokens of
  // the first batch (learn/split/distance_correlation.h).
  double activation_correlation = 0;
};

// Options of one training, in addition to the run's spec. Pointers and spans must stay valid during the call.
struct TrainingOptions {
  // Whole model: the parameters that move; all others keep their bits. Null: all.
  const Coverage* coverage = nullptr;
  // The widths of the sub-model whose parameters are trained. Null: the whole model.
  const Widths* slice = nullptr;
  // With slice: each step trains the first units of a network drawn evenly from these (ordered dropout;
  // Horvath et al., FjORD, NeurIPS 2021, section 3.1), from rng.fork("width"). None may be wider than the
  // slice. Empty: each step trains the whole slice.
  std::span<const Widths> nested;
  // Number of ranks of the adapters that run; if it exceeds their rank, all.
  std::size_t ranks = SIZE_MAX;
  // Ranks below `ranks` to which the spec's nesting truncates the adapters, ascending; drawn from
  // rng.fork("nest").
  std::span<const std::size_t> truncations;
  // Added to each gradient: SCAFFOLD's c - c_k or FedDyn's -g_k, as long as the parameters; empty: nothing.
  std::span<const float> correction;
  // Ditto: lambda (v - w) is added to each gradient of v, in place of the objective's; w is as long as the
  // parameters. Empty: nothing.
  std::span<const float> anchor;
  float lambda = 0;
  // Objective contrastive: the client's last model, as long as the parameters. Empty: without the term.
  std::span<const float> previous;
  // Split training: the blocks up to the cut are trained here, the others by the peer. `coverage` is then
  // SplitLayout::below() of the cut. Null: the whole model is trained here.
  LowerHalf* split = nullptr;
  // The parameters that are not trainable, of a model that reads_apart(); as long as the whole model.
  // `parameters` then needs only the others. Null: `parameters` has all.
  const float* frozen = nullptr;
  const CompactWeights* base = nullptr;          // Workspace::base
  std::size_t epochs = 0;                        // replaces the spec's epochs or steps; 0: it does not
  bool flip_labels = false;                      // trains towards the label classes - 1 - label
  const Normalisation* normalisation = nullptr;  // of the data's columns; null: none
  std::uint64_t max_steps = 0;                   // 0: no limit but the epochs
  RoundNumber round = RoundNumber(1);  // of the run; it sets the position in the learning-rate schedule
  // Called after every step with the number of steps and the loss before the step.
  std::function<void(std::uint64_t steps, float loss)> report;
  // Both end training between two steps and return the steps made so far. `finish` allows at least one step.
  std::stop_token stop;    // abort: the result is discarded
  std::stop_token finish;  // end early: the result counts (FedProx's partial work)
};

class Trainer {
 public:
  // `model` must outlive the trainer.
  Trainer(const Model& model, const TrainingSpec& spec);

  // Trains `parameters` in place on these samples, shuffled in each epoch e from rng.fork("epoch", e). The
  // last batch of an epoch may be smaller. With no samples it does nothing. An objective may pull
  // towards the initial `parameters`. Plain SGD stores no gradient if the model steps in place, the coverage
  // has only whole rows, and there is no momentum, objective or correction. Throws a PartFailure if a model
  // or objective that a program registers fails. Ends early if the peer of a split training fails.
  TrainingResult train(std::span<float> parameters, const Dataset& data,
                       std::span<const std::uint32_t> samples, const Rng& rng,
                       const TrainingOptions& options = {});

  // A buffer of the whole model's size, allocated at first use; train() does not touch it.
  std::span<float> scratch();
  // Scratch for the other half of a split training in this process, made at first use.
  UpperHalf& upper_half();
  // Products of all training of the whole model; training of sub-models is not counted.
  Products products() const { return workspace_ ? workspace_->products : Products(); }

 private:
  struct Nested {
    const Submodels::Entry* network;
    Coverage slice;  // part of `parameters`
    std::size_t size;
  };
  // State of one call of train().
  struct Plan {
    const Model* model;  // the network whose parameters are trained
    Workspace* workspace;
    Coverage moved;
    std::vector<Nested> nested;
    Rng widths;
    std::vector<std::size_t> truncations;  // including the full rank; empty: no nesting
    std::vector<std::uint64_t> taken;      // by truncation: steps that moved its segment of ranks
    Rng draws;                             // for drawing truncations
    LowerHalf* split;                      // null: no split training
    std::span<const float> anchor;         // of Ditto
    float lambda = 0;
    bool in_place;                           // whether no gradient is stored
    float rate;                              // learning rate of the current step
    std::span<const std::uint32_t> samples;  // of the current step
    std::uint64_t step = 0;                  // number of steps begun
    std::uint64_t moves = 0;                 // number of steps that moved the parameters to be moved next
  };

  // Sets up the contrastive term of this training, if it has one.
  void make_contrast(std::span<const float> parameters, const Dataset& data,
                     std::span<const std::uint32_t> samples, const TrainingOptions& options);
  Plan make_plan(std::span<const float> parameters, const Rng& rng, const TrainingOptions& options);
  // Makes one optimizer step and returns the loss before it.
  BatchLoss step(std::span<float> parameters, const Batch& batch, std::span<const float> correction,
                 Plan& plan);
  BatchLoss nested_step(std::span<float> parameters, const Batch& batch, std::span<const float> correction,
                        Plan& plan);
  // Writes the mean gradient over the step's truncations into gradient_. Sets `highest` to the largest of
  // them: the step must move no rank beyond it.
  BatchLoss nested_ranks_gradient(std::span<const float> parameters, const Batch& batch, Plan& plan,
                                  std::size_t& highest);
  // Adds the penalty's gradient for a client with `ranks` ranks, in a step that moves no rank beyond
  // `highest`.
  void add_pruning_gradient(std::span<const float> parameters, std::size_t ranks, std::size_t highest);
  // Moves the trained parameters of this part along gradient_.
  void descend_within(const Range& part, std::span<float> parameters, std::span<const float> correction,
                      const Plan& plan);
  // Moves these parameters along `gradient`.
  void descend(const Range& range, float* gradient, std::span<float> parameters,
               std::span<const float> correction, const Plan& plan);
  // Writes the gradient of the blocks up to the cut into gradient_, if the peer does not fail.
  BatchLoss split_gradient(std::span<const float> parameters, const Batch& batch, const Plan& plan);

  const Model& model_;
  TrainingSpec spec_;
  std::shared_ptr<const Objective> objective_;  // null: the loss alone
  std::unique_ptr<Workspace> workspace_;        // both are made for the first training
  std::unique_ptr<UpperHalf> upper_;
  Submodels submodels_;
  BatchBuffer buffer_;
  Contrast contrast_;
  ContrastTerm term_;
  Optimizer optimizer_;
  AlignedBuffer<float> gradient_;  // this buffer and those below are allocated only as needed
  AlignedBuffer<float> start_;     // with an objective
  AlignedBuffer<float> mean_;      // mean gradient over nested ranks
  AlignedBuffer<float> thin_;      // parameters of a nested network
  AlignedBuffer<float> scratch_;
};

}  // namespace fedge::learn
