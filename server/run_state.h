// RunState: everything about a run that is not a decision: the model (as chunks), the running
// aggregate, evaluation and metrics. The coordinator and the simulator carry out RunEngine's
// effects on the same class. Externally synchronised.
// Memory: what the aggregator takes while updates come in (8 bytes a parameter for a mean), then the
// model (4 bytes a parameter) while it is evaluated, never both; besides, what the server optimizer
// remembers. Independent of the number of clients.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "aggregation/aggregators/aggregator.h"
#include "aggregation/control_variate.h"
#include "aggregation/server_optimizers/server_optimizer.h"
#include "core/crypto/sha256.h"
#include "core/parallel.h"
#include "core/result.h"
#include "learn/dataset.h"
#include "learn/model.h"
#include "protocol/chunks/chunk_store.h"
#include "server/engine/run_engine.h"
#include "server/report/metrics.h"
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
  const std::shared_ptr<const ParameterLayout>& layout() const { return model_->layout(); }
  // The current model, to be sent to clients.
  const std::shared_ptr<protocol::StoredObject>& model_object() const { return object_; }
  Result<ParameterVector> load_model() const;
  // SCAFFOLD's control variate, to be sent to clients beside the model; null in other runs.
  const std::shared_ptr<protocol::StoredObject>& control_object() const { return control_object_; }
  Result<ParameterVector> load_control() const;

  // Reads an update that has arrived once: the Euclidean norm of its values. The error names the first
  // value that may not be there, or the file that could not be read.
  Result<double> inspect(const Coverage& coverage, const aggregation::UpdateValues& values) const;
  // Gives inspected updates to the aggregator, all that wait at once.
  Result<void> fold(std::span<const aggregation::Update> updates);

  // What a shell knows about a round that the engine does not.
  struct Circumstances {
    Bytes up;
    Bytes down;
    double virtual_seconds = 0;  // since the run began, on the engine's clock
    double wall_seconds = 0;     // since the run began
  };
  // Moves the model by the aggregate, evaluates it when due, forgets the aggregate.
  Result<RoundMetrics> close(const RunEngine::CloseRound& round, const Circumstances& circumstances);
  // Why the last round left the model as it was although updates had come, if it did.
  const std::optional<Error>& not_aggregated() const { return not_aggregated_; }

 private:
  Result<void> move_model();
  RunState(const RunConfig& config, const learn::Model& model, const learn::Dataset& test,
           protocol::ChunkStore& store, Parallel& parallel);
  // Replaces `object` by one of the model's shape whose chunk i is filled by fill(i, bytes).
  using Fill = std::function<Result<void>(std::size_t, std::span<std::byte>)>;
  Result<void> replace(std::shared_ptr<protocol::StoredObject>& object, const Fill& fill);
  Result<void> replace_model(const Fill& fill);  // and its hash
  Result<void> replace_control();
  Result<ParameterVector> load(protocol::StoredObject& object) const;
  Result<void> evaluate(RoundMetrics& metrics);

  RunConfig config_;
  const learn::Model* model_;
  const learn::Dataset* test_;
  protocol::ChunkStore* store_;
  Parallel* parallel_;
  std::unique_ptr<aggregation::Aggregator> aggregator_;
  std::unique_ptr<aggregation::ServerOptimizer> optimizer_;
  std::unique_ptr<aggregation::ControlVariate> control_;  // only with SCAFFOLD
  std::shared_ptr<protocol::StoredObject> control_object_;
  std::size_t updates_ = 0;  // given to the aggregator in this round
  std::shared_ptr<protocol::StoredObject> object_;
  std::optional<Error> not_aggregated_;
  Digest hash_{};  // model_hash() of the object's values
};

}  // namespace fedge::server
