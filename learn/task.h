// Task: what training in a run needs, built from a TaskSpec and the run's seed: the training data,
// who holds which samples, and the model. Immutable. A simulator shares one between all its clients;
// a client daemon builds one that holds its own samples alone. Both train through the same function
// and get the same bits.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <vector>

#include "core/ids.h"
#include "core/local_model.h"
#include "core/result.h"
#include "core/rng.h"
#include "learn/data/dataset.h"
#include "learn/data/partition.h"
#include "learn/model.h"
#include "learn/spec.h"
#include "learn/trainer.h"

namespace fedge::learn {

// One client's work in one round. Everything is lent for the call.
struct Assignment {
  ClientId client;
  RoundNumber round;
  const Coverage* coverage = nullptr;  // what is trained, and what the update speaks about; null: all
  LocalModel local = LocalModel::kWhole;
  // kNested: shares of the whole model's widths, in (0, 1]; those wider than the client's slice are passed
  // over, the slice itself is always one of the networks drawn from.
  std::span<const double> shares;
  // Objective scaffold: c - c_k, of the whole model's size; empty: zero.
  std::span<const float> correction;
  // Trains towards classes - 1 - label: what a poisoned client of a simulation does.
  bool flip_labels = false;
  double data_share = 1;        // of the client's samples, what is trained on, in (0, 1]: trained_samples()
  std::uint64_t max_steps = 0;  // optimizer steps after which training ends; 0: no limit but the epochs
  std::stop_token stop;         // give up: the update is of no use
  std::stop_token finish;       // end after the step in hand: the update counts
};

// How many of so many samples a share in (0, 1] of them is: at least one, if there is one.
SampleCount trained_samples(SampleCount count, double share);

class Task {
 public:
  // For all clients. Errors name the key or the file at fault.
  static Result<std::shared_ptr<const Task>> build(const TaskSpec& spec, std::uint64_t seed);
  // For one client: only its samples are in memory.
  static Result<std::shared_ptr<const Task>> build_for(const TaskSpec& spec, std::uint64_t seed,
                                                       ClientId client);
  // For one client whose samples are elsewhere: the model and no samples, so there is nothing to train on.
  static Result<std::shared_ptr<const Task>> build_without_data(const TaskSpec& spec, std::uint64_t seed,
                                                                ClientId client);

  const TaskSpec& spec() const { return spec_; }
  const Model& model() const { return *model_; }
  const Dataset& data() const { return *data_; }
  std::size_t clients() const { return spec_.data.partition.clients; }
  // The numbers in data() of this client's samples; the client must be one of clients(), and the
  // one that the task was built for.
  std::span<const std::uint32_t> samples_of(ClientId client) const;
  // For each class, how many of this client's samples are of it; of those that this share of them trains on.
  std::vector<std::uint64_t> label_counts(ClientId client, double data_share = 1) const;

  // Local training of one client in one round, starting at `global` (model size): writes update = trained -
  // global, packed over the coverage (coverage.count() floats). The result depends on the arguments and
  // the run's seed alone; without a coverage it is what it was with a coverage of everything.
  // `trainer` must have been made for this task's model and training spec. kInvalid: a coverage beyond the
  // model or, for a slice, one that is none; a share or a correction that does not fit.
  Result<TrainingResult> train(const Assignment& assignment, std::span<const float> global,
                               std::span<float> update, Trainer& trainer) const;
  // The parameters of the global model that training this coverage reads: with adapters, none of ranks
  // beyond.
  Coverage needed(const Coverage& trained) const;
  // Whether most of a model that is handed out is what it was before, since it is frozen.
  bool frozen() const { return model_->adapters() != nullptr; }
  // A trainer for this task; one a thread.
  Trainer make_trainer() const { return Trainer(*model_, spec_.training); }

 private:
  TrainingResult train_part(const Assignment& assignment, std::span<const float> global,
                            std::span<float> update, TrainingOptions options, Trainer& trainer) const;
  Result<TrainingResult> train_slice(const Assignment& assignment, std::span<const float> global,
                                     std::span<float> update, Trainer& trainer) const;
  Result<TrainingResult> train_prefix(const Assignment& assignment, std::span<const float> global,
                                      std::span<float> update, Trainer& trainer) const;
  Result<void> check(const Assignment& assignment) const;
  // The same ones in every round.
  std::vector<std::uint32_t> trained_on(ClientId client, double data_share) const;
  // Trains `parameters` on the assigned ones of the client's samples with its stream of random numbers.
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
  Partition partition_;           // of all clients, or with one part that is all of data_
  std::optional<ClientId> only_;  // whom that one part belongs to
  std::unique_ptr<Model> model_;
};

}  // namespace fedge::learn
