// EvaluationResults: from the clients' evaluations of a model to the round's metrics. In a run with secure
// aggregation only the total is known. Externally synchronised.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "core/result.h"
#include "learn/evaluation/sums.h"
#include "server/engine/run_engine.h"
#include "server/report/metrics.h"

namespace fedge::server {

class EvaluationResults {
 public:
  explicit EvaluationResults(const learn::EvaluationSums::Shape& shape) : shape_(shape) {}

  // Takes the total of masked sums, for the next close(). kInvalid if no clients can have these sums
  // together.
  Result<void> take_masked(std::span<const std::int64_t> total);
  // Writes the results of the phase into the metrics of the round and, with tracks, of the track. The round
  // has those of its first track.
  void close(const RunEngine::CloseRound& turn, RoundMetrics& metrics);

 private:
  learn::EvaluationSums::Shape shape_;
  std::optional<learn::EvaluationSums> masked_;
};

}  // namespace fedge::server
