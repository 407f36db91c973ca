#include "server/evaluation_results.h"

#include <utility>
#include <vector>

namespace fedge::server {

Result<void> EvaluationResults::take_masked(std::span<const std::int64_t> total) {
  FEDGE_TRY(sums, learn::EvaluationSums::from(shape_, total));
  masked_ = std::move(sums);
  return {};
}

void EvaluationResults::close(const RunEngine::CloseRound& turn, RoundMetrics& metrics) {
  std::vector<learn::EvaluationSums> parts;
  if (auto total = std::exchange(masked_, std::nullopt)) parts.push_back(std::move(*total));
  for (const ClientSums& one : turn.evaluations)
    if (auto sums = learn::EvaluationSums::from(shape_, one.sums)) parts.push_back(std::move(*sums));
  const ClientEvaluation evaluation = client_evaluation(turn.selected, turn.completed, parts);
  if (turn.description)
    for (TrackMetrics& track : metrics.tracks)
      if (track.track == *turn.description) track.evaluation = evaluation;
  if (!metrics.evaluation) metrics.evaluation = evaluation;
}

}  // namespace fedge::server
