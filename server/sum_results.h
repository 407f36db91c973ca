// SumResults: what clients tell by sums over their own samples: their evaluations of the round's models, and
// the statistics of their data by which a run normalises. In a run with secure aggregation only totals are
// known. Externally synchronised.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/parallel.h"
#include "core/result.h"
#include "learn/evaluation/sums.h"
#include "learn/statistics/federated_statistics.h"
#include "run/privacy/private_sum.h"
#include "run/run_config.h"
#include "server/conductor/track_view.h"
#include "server/engine/run_engine.h"
#include "server/report/metrics.h"
#include "server/store/saved_state.h"

namespace fedge::server {

class SumResults {
 public:
  explicit SumResults(const learn::EvaluationSums::Shape& shape) : shape_(shape) {}

  // Prepares for the data of the run, and for its statistics if it normalises by them. kInvalid if its data
  // does not allow them.
  Result<void> prepare(const run::RunConfig& config);
  // Adds what the run asks of its clients; their update is a zero at this parameter.
  void add_rules(const run::RunConfig& config, std::size_t parameter, RoundRules& rules) const;
  // Adds what clients are told of the statistics.
  void add_view(TrackView& view) const;

  // Takes the total of masked sums, for the next close(). kInvalid if no clients can have these sums
  // together.
  Result<void> take_masked(TaskKind kind, std::span<const std::int64_t> total);
  // Whether closing this phase releases a step of statistics of somebody's data.
  bool releases(const RunEngine::CloseRound& turn) const;
  // Writes the results of the phase into the metrics of the round and, with tracks, of the track. The round
  // has those of its first track. With differential privacy, `noise` makes the noise of a step of the
  // statistics; kInvalid if it hides the data.
  Result<void> close(const RunEngine::CloseRound& turn, RoundMetrics& metrics,
                     const run::PrivateSum::Noise* noise, Parallel& parallel);
  // The metrics of one client's evaluation; nothing if no client can have these sums.
  std::optional<learn::EvaluationMetrics> metrics_of(std::span<const std::int64_t> sums) const;
  // False of a step of statistics, the last closed phase, that has no result.
  bool made(const RunEngine::CloseRound& turn) const { return turn.kind != TaskKind::kStatistics || made_; }

  std::optional<SavedStatistics> save() const;
  // kCorrupt if the run's statistics are missing or of other data.
  Result<void> restore(std::optional<SavedStatistics> saved);

 private:
  void close_evaluation(const RunEngine::CloseRound& turn, RoundMetrics& metrics);
  Result<void> close_statistics(const RunEngine::CloseRound& turn, RoundMetrics& metrics,
                                const run::PrivateSum::Noise* noise, Parallel& parallel);

  // By which numbers errors of predicted values are multiplied.
  std::vector<float> scale() const;

  learn::EvaluationSums::Shape shape_;
  learn::FeatureColumns columns_ = {};
  std::vector<float> scale_ = {};                         // without statistics
  std::optional<learn::FederatedStatistics> statistics_;  // empty if the run has none
  std::uint64_t variance_ = 0;                            // of the noise on them; 0: there is none
  std::optional<std::vector<std::int64_t>> masked_;       // a total, until close()
  bool made_ = true;                                      // the last step of statistics has a result
};

}  // namespace fedge::server
