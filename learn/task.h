// Task: the immutable inputs of a run's training: the training data, the partition of its samples and the
// model, built from a TaskSpec and the run's seed. A simulator shares one Task between all its clients; a
// client daemon builds one with only its own samples. Both train through the same function and get the same
// bits.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <vector>

#include "core/aligned_buffer.h"
#include "core/ids.h"
#include "core/local_model.h"
#include "core/result.h"
#include "core/rng.h"
#include "core/split/split_layout.h"
#include "learn/data/dataset.h"
#include "learn/data/files/own_data.h"
#include "learn/data/partition.h"
#include "learn/evaluation/evaluate.h"
#include "learn/model.h"
#include "learn/spec.h"
#include "learn/split/upper_peer.h"
#include "learn/trainer.h"

namespace fedge::learn {

// One client's work in one round. The caller keeps everything that it points to alive during the call.
struct Assignment {
  ClientId client;
  RoundNumber round;
  const Coverage* coverage = nullptr;  // what is trained and what the update contains; null: everything
  LocalModel local = LocalModel::kWhole;
  // kNested: fractions of the whole model's widths, in (0, 1]. Networks wider than the client's slice are
  // ignored; the slice itself can always be drawn.
  std::span<const double> shares;
  // Objective scaffold: c - c_k; dynamic: -g_k. As long as the whole model; empty: zero.
  std::span<const float> correction;
  // Trains towards the label classes - 1 - label: simulates a poisoned client.
  bool flip_labels = false;
  // Ditto's own model: pulled towards `anchor`, as long as the whole model. Empty: no pull.
  std::span<const float> anchor;
  std::span<const float> previous;  // objective contrastive: the client's last model; empty: none
  std::size_t epochs = 0;           // in place of the spec's; 0: the spec's
  bool personal = false;            // trains the client's own parameters, with random streams of their own
  const Normalisation* normalisation = nullptr;  // of the data's columns; null: none
  const CompactWeights* base = nullptr;  // the matrices that are not trained; null: the model has them
  // kSplit: the other half of the training; null: it runs here.
  UpperPeer* upper = nullptr;
  // kSplit, if the other half runs here: gets what that half has changed, packed over SplitLayout::above().
  std::vector<float>* above = nullptr;
  double data_share = 1;  // fraction of the client's samples to train on, in (0, 1]; see trained_samples()
  std::uint64_t max_steps = 0;  // training ends after this many optimizer steps; 0: no limit but the epochs
  std::stop_token stop;         // abort: the update is discarded
  std::stop_token finish;       // end after the current step: the update counts
};

// The fraction `share`, in (0, 1], of `count`, rounded up.
SampleCount trained_samples(SampleCount count, double share);
// On how many samples a client that has this many trains in a whole task, counting repetitions.
inline double samples_seen(const TrainingSpec& spec, SampleCount count) {
  const auto samples = static_cast<double>(count.value());
  if (spec.local_steps == 0) return samples * static_cast<double>(spec.local_epochs);
  return static_cast<double>(spec.local_steps) * std::min(static_cast<double>(spec.batch_size), samples);
}

class Task {
 public:
  // Builds the task for all clients. Errors name the key or the file at fault.
  // `evaluates`: also loads the samples on which clients with own data evaluate models.
  static Result<std::shared_ptr<const Task>> build(const TaskSpec& spec, std::uint64_t seed,
                                                   bool evaluates = false);
  // Builds the task for one client, with only its samples in memory.
  static Result<std::shared_ptr<const Task>> build_for(const TaskSpec& spec, std::uint64_t seed,
                                                       ClientId client, bool evaluates = false);
  // Builds the model without data, for a client whose samples are elsewhere: the task cannot train.
  static Result<std::shared_ptr<const Task>> build_without_data(const TaskSpec& spec, std::uint64_t seed,
                                                                ClientId client);

  const TaskSpec& spec() const { return spec_; }
  const Model& model() const { return *model_; }
  const Dataset& data() const { return *data_; }
  std::size_t clients() const { return spec_.data.partition.clients; }
  // The indices in data() of this client's samples. The client must be below clients(), and must be the one
  // that the task was built for, if it was built for one.
  ClientSamples samples_of(ClientId client) const;
  // Their number; O(1).
  SampleCount sample_count(ClientId client) const;
  // Those of them that it trains on, of this fraction; the same in every round.
  std::vector<std::uint32_t> trained_on(ClientId client, double data_share) const;
  // The random stream of its training in this round.
  Rng training_rng(ClientId client, RoundNumber round) const {
    return rng_.fork("train", round.value(), client.value());
  }
  // Number of samples on which this client evaluates models.
  SampleCount evaluation_samples(ClientId client) const;
  // Evaluates a model on them. kInvalid: a model of a kind that a program registers has failed.
  Result<EvaluationSums> evaluate(ClientId client, std::span<const float> model,
                                  const SampleEvaluation& how = {}) const;
  // Counts the values of this client's training samples (learn/statistics/federated_statistics.h), as shares
  // of a whole unless that is 0. kRefused: the run does not normalise by statistics, or the samples are
  // elsewhere. kInvalid: edges that do not fit.
  Result<std::vector<std::int64_t>> count_values(ClientId client, std::span<const float> edges,
                                                 std::int64_t whole) const;
  // For each class, the number of this client's samples in the fraction `data_share` that it trains on.
  std::vector<std::uint64_t> label_counts(ClientId client, double data_share = 1) const;

  // Trains one client for one round, starting at `global` (the model's size). Writes update = trained -
  // global, packed over the coverage (coverage.count() floats). The result depends only on the arguments and
  // the run's seed; no coverage gives the same result as a coverage of everything. `trainer` must have been
  // made for this task's model and training spec. kInvalid: a coverage beyond the model, a coverage that is
  // not a slice where one is needed, a fraction or correction that does not fit, or an exception of a model
  // or objective that a program registers.
  Result<TrainingResult> train(const Assignment& assignment, std::span<const float> global,
                               std::span<float> update, Trainer& trainer) const;
  // The parameters of the global model that a client must have to train this coverage. A client that trains
  // the first ranks of adapters needs none of the higher ranks.
  Coverage needed(const Coverage& trained) const;
  // Where the model can be cut. Only of a task with local_model = "split".
  const SplitLayout& split_layout() const { return *split_; }
  // The parameters that change with a client that trains these. With split training, the coordinator trains
  // some of them.
  Coverage changed_by(const Coverage& trained) const {
    return split_ ? split_->changed_by(trained) : trained;
  }
  // The parameters that each client keeps for itself; empty unless the model has personal layers.
  Coverage personal() const;
  // Whether a program has registered the model or the objective, so that train() may fail in them.
  bool has_own_parts() const;
  // Whether most of the model is the same in the next round: it is frozen, or another block is trained.
  bool frozen() const {
    return model_->adapters() != nullptr || spec_.training.local_model == LocalModel::kBlock;
  }
  // A trainer for this task; each thread needs its own.
  Trainer make_trainer() const { return Trainer(*model_, spec_.training); }

 private:
  Result<TrainingResult> train_assigned(const Assignment& assignment, std::span<const float> global,
                                        std::span<float> update, Trainer& trainer) const;
  void copy_trainable(std::span<const float> global, std::span<float> copy) const;
  TrainingResult train_part(const Assignment& assignment, std::span<const float> global,
                            std::span<float> update, TrainingOptions options, Trainer& trainer) const;
  Result<TrainingResult> train_slice(const Assignment& assignment, std::span<const float> global,
                                     std::span<float> update, Trainer& trainer) const;
  Result<void> find_cuts();
  Result<TrainingResult> train_split(const Assignment& assignment, std::span<const float> global,
                                     std::span<float> update, Trainer& trainer) const;
  Result<TrainingResult> train_prefix(const Assignment& assignment, std::span<const float> global,
                                      std::span<float> update, Trainer& trainer) const;
  Result<void> check(const Assignment& assignment) const;
  Result<void> check_normalisation(const FeatureColumns& columns, const Normalisation* by) const;
  // Trains `parameters` on the assigned samples with the client's random stream for this round.
  TrainingResult run(const Assignment& assignment, std::span<float> parameters, TrainingOptions options,
                     Trainer& trainer) const;

  Task(const TaskSpec& spec, std::uint64_t seed, std::shared_ptr<const Dataset> data, Partition partition,
       std::unique_ptr<Model> model)
      : spec_(spec),
        rng_(seed),
        data_(std::move(data)),
        partition_(std::move(partition)),
        model_(std::move(model)) {}

  TaskSpec spec_;
  Rng rng_;
  std::shared_ptr<const Dataset> data_;
  Partition partition_;           // of all clients, or a single part with all of data_
  std::optional<ClientId> only_;  // the client that the single part belongs to
  std::unique_ptr<Model> model_;
  std::optional<SplitLayout> split_;        // of a task with local_model = "split"
  std::optional<OwnedSamples> evaluation_;  // like data_ and partition_
};

}  // namespace fedge::learn
