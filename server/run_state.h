// RunState: everything about a run that is not a decision: the model (as chunks), the running
// aggregate, evaluation and metrics. The coordinator and the simulator carry out RoundEngine's
// effects on the same class. Externally synchronised.
// Memory: the aggregate (8 bytes a parameter) while updates come in, then the model (4 bytes a
// parameter) while it is evaluated, never both; independent of the number of clients.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "aggregation/accumulator.h"
#include "core/crypto/sha256.h"
#include "core/parallel.h"
#include "core/result.h"
#include "learn/dataset.h"
#include "learn/model.h"
#include "protocol/chunks/chunk_store.h"
#include "server/report/metrics.h"
#include "server/round_engine.h"
#include "server/run_config.h"

namespace fedge::server {

class RunState {
 public:
  // Builds the initial model from the run's seed. `model`, `test`, `store` and `parallel` are lent and must
  // outlive it.
  static Result<RunState> create(const RunConfig& config, const learn::Model& model,
                                 const learn::Dataset& test, protocol::ChunkStore& store, Parallel& parallel);

  const RunConfig& config() const { return config_; }
  RoundRules rules() const;
  // The current model, to be sent to clients.
  const std::shared_ptr<protocol::StoredObject>& model_object() const { return object_; }
  Result<ParameterVector> load_model() const;

  // Whether these values of an update may be folded; the error names the parameter.
  Result<void> check(const Coverage& coverage, std::size_t first, std::span<const float> values) const;
  // Folds updates held in memory, all that wait in one pass.
  Result<void> fold(std::span<const aggregation::UpdateView> updates);
  // Folds an update from the chunk store, every chunk of which has passed check().
  Result<void> fold(protocol::StoredObject& update, SampleCount weight);

  // What a shell knows about a round that the engine does not.
  struct Circumstances {
    Bytes up;
    Bytes down;
    double virtual_seconds = 0;  // since the run began, on the engine's clock
    double wall_seconds = 0;     // since the run began
  };
  // Moves the model by the aggregate, evaluates it when due, forgets the aggregate.
  Result<RoundMetrics> close(const RoundEngine::CloseRound& round, const Circumstances& circumstances);

 private:
  RunState(const RunConfig& config, const learn::Model& model, const learn::Dataset& test,
           protocol::ChunkStore& store, Parallel& parallel);
  // Replaces the model object, and its hash, by one whose chunk i is filled by fill(i, bytes).
  Result<void> replace_model(const std::function<Result<void>(std::size_t, std::span<std::byte>)>& fill);
  Result<void> evaluate(RoundMetrics& metrics);

  RunConfig config_;
  const learn::Model* model_;
  const learn::Dataset* test_;
  protocol::ChunkStore* store_;
  Parallel* parallel_;
  aggregation::Accumulator accumulator_;
  std::shared_ptr<protocol::StoredObject> object_;
  Digest hash_{};  // model_hash() of the object's values
};

}  // namespace fedge::server
