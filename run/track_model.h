// TrackModel: one model of a run and its state: the aggregate of its round, the server optimizer's memory,
// SCAFFOLD's control variate. A run has one, or one for each track. Tracks share nothing but the chunks of a
// model that one track started from. Externally synchronised. The model itself is in the chunk store.
// Memory: the aggregator's during a round (8 bytes a parameter for a mean), plus the server optimizer's.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "aggregation/aggregators/aggregator.h"
#include "aggregation/control_variate.h"
#include "aggregation/server_optimizers/server_optimizer.h"
#include "core/adapter_layout.h"
#include "core/crypto/sha256.h"
#include "core/parallel.h"
#include "core/result.h"
#include "learn/model.h"
#include "protocol/chunks/chunk_store.h"
#include "run/privacy/private_sum.h"
#include "run/run_config.h"

namespace fedge::run {

// The layout of the model's adapters; null if it has none.
std::shared_ptr<const AdapterLayout> shared_adapters(const learn::Model& model);

class TrackModel {
 public:
  // Creates the initial model from the run's seed. Borrowed arguments must outlive the result.
  static Result<TrackModel> create(std::shared_ptr<const RunConfig> config, const learn::Model& model,
                                   protocol::ChunkStore& store, Parallel& parallel);
  // The model that another track may start from.
  struct Beginning {
    std::shared_ptr<protocol::StoredObject> object;
    Digest hash{};
  };
  Beginning beginning() const { return {object_, hash_}; }
  // Creates another track of the same run that starts from this model, without any other state.
  Result<TrackModel> branch(const Beginning& beginning) const;

  // The state to store durably between two rounds.
  struct Saved {
    std::shared_ptr<protocol::StoredObject> model;
    std::shared_ptr<protocol::StoredObject> control;  // null without SCAFFOLD
    // State of aggregator, optimizer and control variate in sequence; null if empty.
    std::shared_ptr<protocol::StoredObject> memory;
    Digest hash{};
  };
  // On return the objects are durable. The caller must remove them.
  Result<Saved> save();
  // Restores a saved track on the same kind of machine. kCorrupt if it belongs to another run.
  Result<TrackModel> restored(const Saved& saved) const;
  // Continues from this model, in a run without other state across rounds (otherwise kCorrupt). Borrowed
  // arguments must outlive the result.
  static Result<TrackModel> at(std::shared_ptr<const RunConfig> config, const learn::Model& model,
                               protocol::ChunkStore& store, Parallel& parallel,
                               std::shared_ptr<protocol::StoredObject> object);

  // The current model, to be sent to clients.
  const std::shared_ptr<protocol::StoredObject>& object() const { return object_; }
  // SCAFFOLD's control variate, to be sent to clients beside the model; null in other runs.
  const std::shared_ptr<protocol::StoredObject>& control_object() const { return control_object_; }
  // model_hash() of the model's values.
  const Digest& hash() const { return hash_; }
  Result<ParameterVector> load() const { return load(*object_); }
  Result<ParameterVector> load_control() const { return load(*control_object_); }

  // Adds inspected updates to the aggregate, all waiting ones in one call.
  Result<void> fold(std::span<const aggregation::Update> updates);
  // Adds a sum of updates computed elsewhere; kInvalid if updates cannot have such a sum.
  Result<void> add_sum(const aggregation::ExactSum& sum);
  // The integers in which the round's updates are summed: the aggregator's, and SCAFFOLD's changes. If
  // updates are folded without values because another process adds these, its integers must be added to
  // these. Empty before the first update.
  std::vector<std::span<std::int64_t>> round_sums();
  // Moves the model by the aggregate and clears the aggregate. May be called again after kResource. With
  // differential privacy, `noise` is the source of noise.
  Result<void> close(const PrivateSum::Noise* noise = nullptr);
  // Replaces close() if others computed the model from the same updates: takes the model, complete and in
  // this model's store. kInvalid if one of its values is not finite.
  Result<void> adopt(std::shared_ptr<protocol::StoredObject> made);
  // Why the last close() left the model unchanged despite updates, if it did.
  const std::optional<Error>& not_aggregated() const { return not_aggregated_; }

  // The norm that the next round's updates are clipped to, with differential privacy.
  std::optional<double> clipping_norm() const {
    return private_ ? std::optional(private_->clipping_norm()) : std::nullopt;
  }

  // Upper bound on the updates in one step of a run's model.
  static std::size_t contributors(const RunConfig& config);

 private:
  TrackModel(std::shared_ptr<const RunConfig> config, const learn::Model& model, protocol::ChunkStore& store,
             Parallel& parallel);
  Result<void> start_control();
  void make_control();
  // The state to keep across rounds.
  std::vector<std::span<std::byte>> memory();
  Result<void> prepare(const PrivateSum::Noise* noise);
  Result<void> move_model(const PrivateSum::Noise* noise);
  // Sorts the model's units if the planner requires it.
  Result<void> sort_units();
  // Replaces `object` by one of the model's shape whose chunk i is filled by fill(i, bytes).
  using Fill = std::function<Result<void>(std::size_t, std::span<std::byte>)>;
  Result<void> replace(std::shared_ptr<protocol::StoredObject>& object, const Fill& fill);
  Result<void> replace_model(const Fill& fill);  // also updates hash_
  Result<void> replace_control();
  void take(std::shared_ptr<protocol::StoredObject>& object, std::shared_ptr<protocol::StoredObject> made);
  Result<ParameterVector> load(protocol::StoredObject& object) const;

  std::shared_ptr<const RunConfig> config_;
  const learn::Model* model_;
  protocol::ChunkStore* store_;
  Parallel* parallel_;
  std::unique_ptr<aggregation::Aggregator> aggregator_;
  std::unique_ptr<aggregation::ServerOptimizer> optimizer_;
  std::unique_ptr<aggregation::ControlVariate> control_;  // only with SCAFFOLD
  std::optional<PrivateSum> private_;                     // only with differential privacy
  std::shared_ptr<protocol::StoredObject> control_object_;
  bool prepared_ = false;    // the aggregate of this round is prepared
  bool moved_ = false;       // by move_model() in this round, but its units are not sorted yet
  std::size_t updates_ = 0;  // added to the aggregator in this round
  std::shared_ptr<protocol::StoredObject> object_;
  std::optional<Error> not_aggregated_;
  Digest hash_{};
};

}  // namespace fedge::run
