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

#include "core/ids.h"
#include "core/result.h"
#include "core/rng.h"
#include "learn/dataset.h"
#include "learn/model.h"
#include "learn/partition.h"
#include "learn/spec.h"
#include "learn/trainer.h"

namespace fedge::learn {

class Task {
 public:
  // For all clients. Errors name the key or the file at fault.
  static Result<std::shared_ptr<const Task>> build(const TaskSpec& spec, std::uint64_t seed);
  // For one client: only its samples are in memory.
  static Result<std::shared_ptr<const Task>> build_for(const TaskSpec& spec, std::uint64_t seed,
                                                       ClientId client);

  const TaskSpec& spec() const { return spec_; }
  const Model& model() const { return *model_; }
  const Dataset& data() const { return *data_; }
  std::size_t clients() const { return spec_.data.partition.clients; }
  // The numbers in data() of this client's samples; the client must be one of clients(), and the
  // one that the task was built for.
  std::span<const std::uint32_t> samples_of(ClientId client) const;

  // Local training of one client in one round, starting at `global`: writes update = trained - global
  // (both model size). The result depends on the arguments and the run's seed alone.
  // `trainer` must have been made for this task's model and training spec. After a request to stop,
  // the update is of no use.
  TrainingResult train(ClientId client, RoundNumber round, std::span<const float> global,
                       std::span<float> update, Trainer& trainer, const std::stop_token& stop = {}) const;
  // A trainer for this task; one a thread.
  Trainer make_trainer() const { return Trainer(*model_, spec_.training); }

 private:
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
