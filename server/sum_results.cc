#include "server/sum_results.h"

#include <cmath>
#include <utility>

#include "learn/statistics/shares.h"
#include "privacy/differential/noise.h"

namespace fedge::server {

Result<void> SumResults::prepare(const run::RunConfig& config) {
  const learn::DataSpec& data = config.task.data;
  const bool in_units = shape_.kind == learn::TargetKind::kValues || shape_.steps;
  if (!data.federated_normalisation && !in_units) return {};
  FEDGE_TRY(info, learn::describe(data));
  columns_ = info.columns;
  scale_ = info.target_scale;
  if (!data.federated_normalisation) return {};
  variance_ = config.privacy.statistics_variance;
  FEDGE_TRY(statistics,
            learn::FederatedStatistics::create(
                info, {config.privacy.statistics_whole, std::sqrt(static_cast<double>(variance_))}));
  statistics_.emplace(std::move(statistics));
  return {};
}

void SumResults::add_rules(const run::RunConfig& config, std::size_t parameter, RoundRules& rules) const {
  const Coverage one = Coverage::of({{parameter, parameter + 1}});
  if (config.evaluation.on_clients())
    rules.evaluation = EvaluationRules{
        .every = config.evaluate_every,
        .clients = config.evaluation.clients,
        .apart = config.privacy.on(),
        .sums = {one, shape_.size(),
                 [shape = shape_](std::span<const std::int64_t> values, std::uint64_t most) -> Result<void> {
                   FEDGE_TRY(sums, learn::EvaluationSums::from(shape, values, most));
                   if (sums.clients() > 1) return invalid("the evaluation is of several clients");
                   return {};
                 }}};
  if (statistics_)
    rules.statistics =
        StatisticsRules{.steps = learn::StatisticsShape::kSteps,
                        .sums = {one, statistics_->shape().size(),
                                 [shape = statistics_->shape()](std::span<const std::int64_t> sums,
                                                                std::uint64_t most) -> Result<void> {
                                   if (shape.whole > 0) return learn::check_shares(shape, sums);
                                   FEDGE_TRY_VOID(learn::check_counts(shape, sums, most));
                                   if (sums[learn::StatisticsShape::kClients] > 1)
                                     return invalid("the statistics are of several clients");
                                   return {};
                                 }}};
}

void SumResults::add_view(TrackView& view) const {
  if (!statistics_) return;
  if (statistics_->complete())
    view.normalisation = statistics_->normalisation();
  else
    view.edges = statistics_->edges();
}

Result<void> SumResults::take_masked(TaskKind kind, std::span<const std::int64_t> total) {
  const std::uint64_t most = learn::EvaluationSums::kMostSamples;
  // With noise, nothing may depend on the total before it: without_noise() takes any.
  if (kind == TaskKind::kStatistics && variance_ > 0) {
    if (total.size() != statistics_->shape().size()) return invalid("the statistics have other sums");
  } else if (kind == TaskKind::kStatistics) {
    FEDGE_TRY_VOID(learn::check_counts(statistics_->shape(), total, most));
  } else if (const auto sums = learn::EvaluationSums::from(shape_, total, most); !sums) {
    return sums.error();
  }
  masked_.emplace(total.begin(), total.end());
  return {};
}

bool SumResults::releases(const RunEngine::CloseRound& turn) const {
  return turn.kind == TaskKind::kStatistics && (masked_ || !turn.sums.empty());
}

Result<void> SumResults::close(const RunEngine::CloseRound& turn, RoundMetrics& metrics,
                               const run::PrivateSum::Noise* noise, Parallel& parallel) {
  if (turn.kind == TaskKind::kStatistics) return close_statistics(turn, metrics, noise, parallel);
  close_evaluation(turn, metrics);
  return {};
}

std::optional<learn::EvaluationMetrics> SumResults::metrics_of(std::span<const std::int64_t> sums) const {
  const auto read = learn::EvaluationSums::from(shape_, sums);
  return read ? std::optional(read->metrics(scale())) : std::nullopt;
}

void SumResults::close_evaluation(const RunEngine::CloseRound& turn, RoundMetrics& metrics) {
  std::vector<learn::EvaluationSums> parts;
  const auto add = [&](std::span<const std::int64_t> values) {
    if (auto sums = learn::EvaluationSums::from(shape_, values)) parts.push_back(std::move(*sums));
  };
  if (const auto total = std::exchange(masked_, std::nullopt)) add(*total);
  for (const ClientSums& one : turn.sums) add(one.sums);
  const ClientEvaluation evaluation = client_evaluation(turn.selected, turn.completed, parts, scale());
  if (turn.description)
    for (TrackMetrics& track : metrics.tracks)
      if (track.track == *turn.description) track.evaluation = evaluation;
  if (!metrics.evaluation) metrics.evaluation = evaluation;
}

std::vector<float> SumResults::scale() const {
  if (!statistics_ || !statistics_->complete()) return scale_;
  return learn::target_scale(columns_, statistics_->normalisation(), scale_);
}

Result<void> SumResults::close_statistics(const RunEngine::CloseRound& turn, RoundMetrics& metrics,
                                          const run::PrivateSum::Noise* noise, Parallel& parallel) {
  const bool any = releases(turn);
  std::vector<std::int64_t> total(statistics_->shape().size());
  if (auto masked = std::exchange(masked_, std::nullopt)) total = std::move(*masked);
  for (const ClientSums& one : turn.sums) learn::add_counts(total, one.sums);
  made_ = variance_ > 0 ? any : total[learn::StatisticsShape::kClients] > 0;
  if (!made_) return {};
  if (variance_ > 0) {
    const Secret key = privacy::noise_key(*noise->root, {noise->task, variance_}, total);
    privacy::add_noise(total, {.key = key, .variance = variance_}, parallel);
    FEDGE_TRY_VOID(statistics_->take_noisy(total));
  } else {
    statistics_->take(total);
  }
  if (statistics_->complete()) metrics.statistics = statistics_->result();
  return {};
}

std::optional<SavedStatistics> SumResults::save() const {
  if (!statistics_ || !statistics_->complete()) return std::nullopt;
  return SavedStatistics{statistics_->edges(), statistics_->sums()};
}

Result<void> SumResults::restore(std::optional<SavedStatistics> saved) {
  if (!statistics_) return {};
  if (!saved) return Error{ErrorCode::kCorrupt, "the checkpoint lacks the statistics of the run's data"};
  return statistics_->restore(std::move(saved->edges), std::move(saved->sums));
}

}  // namespace fedge::server
