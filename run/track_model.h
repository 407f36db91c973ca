// TrackModel: one model of a run and everything that moves it: the aggregate of its round, the server
// optimizer's memory, SCAFFOLD's control variate. A run has one, or one for each track. Nothing of it is
// shared with another, but the chunks of a model that one began as. Externally synchronised. Memory: what the
// aggregator takes while updates come in (8 bytes a parameter for a mean); besides, what the server optimizer
// remembers. The model itself is in the chunk store.
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

// Where the model's adapters lie; null if it has none.
std::shared_ptr<const AdapterLayout> shared_adapters(const learn::Model& model);

class TrackModel {
 public:
  // What is lent must outlive it. The initial model, from the run's seed.
  static Result<TrackModel> create(std::shared_ptr<const RunConfig> config, const learn::Model& model,
                                   protocol::ChunkStore& store, Parallel& parallel);
  // What another may begin as.
  struct Beginning {
    std::shared_ptr<protocol::StoredObject> object;
    Digest hash{};
  };
  Beginning beginning() const { return {object_, hash_}; }
  // One of the same run that begins as this, with nothing else.
  Result<TrackModel> branch(const Beginning& beginning) const;

  // What is to be kept of it between two rounds, durably.
  struct Saved {
    std::shared_ptr<protocol::StoredObject> model;
    std::shared_ptr<protocol::StoredObject> control;  // null in runs without
    // What aggregator, optimizer and control variate remember, one after the other; null if that is nothing.
    std::shared_ptr<protocol::StoredObject> memory;
    Digest hash{};
  };
  // When it returns, the objects survive a power cut. They are the caller's to remove.
  Result<Saved> save();
  // The one that was saved, on the same kind of machine. kCorrupt if that is another run's.
  Result<TrackModel> restored(const Saved& saved) const;
  // One that goes on from this model, in a run that remembers nothing else from round to round; kCorrupt
  // otherwise. What is lent must outlive it.
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

  // Gives inspected updates to the aggregator, all that wait at once.
  Result<void> fold(std::span<const aggregation::Update> updates);
  // The same of updates that have been summed elsewhere; kInvalid if they cannot come to this.
  Result<void> add_sum(const aggregation::ExactSum& sum);
  // Moves the model by the aggregate and forgets the aggregate. After kResource it may be called again. With
  // differential privacy `noise` says where noise comes from.
  Result<void> close(const PrivateSum::Noise* noise = nullptr);
  // In the place of close(): takes a model that others have made of the same updates, complete and in this
  // model's store. kInvalid if a value of it is not finite.
  Result<void> adopt(std::shared_ptr<protocol::StoredObject> made);
  // Why the last close() left the model as it was although updates had come, if it did.
  const std::optional<Error>& not_aggregated() const { return not_aggregated_; }

  // The norm that the next round's updates are clipped to, with differential privacy.
  std::optional<double> clipping_norm() const {
    return private_ ? std::optional(private_->clipping_norm()) : std::nullopt;
  }

  // Most updates that can make one step of a run's model.
  static std::size_t contributors(const RunConfig& config);

 private:
  TrackModel(std::shared_ptr<const RunConfig> config, const learn::Model& model, protocol::ChunkStore& store,
             Parallel& parallel);
  Result<void> start_control();
  void make_control();
  // What is to be remembered from one round to the next.
  std::vector<std::span<std::byte>> memory();
  Result<void> prepare(const PrivateSum::Noise* noise);
  Result<void> move_model(const PrivateSum::Noise* noise);
  // Replaces `object` by one of the model's shape whose chunk i is filled by fill(i, bytes).
  using Fill = std::function<Result<void>(std::size_t, std::span<std::byte>)>;
  Result<void> replace(std::shared_ptr<protocol::StoredObject>& object, const Fill& fill);
  Result<void> replace_model(const Fill& fill);  // and its hash
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
  bool prepared_ = false;    // the aggregate of this round
  std::size_t updates_ = 0;  // given to the aggregator in this round
  std::shared_ptr<protocol::StoredObject> object_;
  std::optional<Error> not_aggregated_;
  Digest hash_{};
};

}  // namespace fedge::run
