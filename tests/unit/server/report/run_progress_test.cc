#include "server/report/run_progress.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace fedge::server {
namespace {

constexpr double kNoValue = std::numeric_limits<double>::quiet_NaN();

// Adds rounds with these losses; returns the round in which the run ended, or 0.
std::uint64_t ended_in(RunProgress& progress, const std::vector<double>& losses) {
  for (std::size_t i = 0; i < losses.size(); ++i) {
    RoundMetrics round;
    round.round = i + 1;
    round.test_loss = losses[i];
    round.test_accuracy = 1 - losses[i];
    (void)progress.add(round);
    if (progress.state().ended) return i + 1;
  }
  return 0;
}

run::SelectionSpec stop_by_loss(std::uint32_t patience, double min_change = 0) {
  return {.stop = {.metric = run::SelectionMetric::kLoss, .patience = patience, .min_change = min_change}};
}

}  // namespace

TEST_CASE("progress: a run ends after so many evaluations without a better value") {
  RunProgress progress(stop_by_loss(2));
  CHECK(ended_in(progress, {0.9, 0.8, 0.8, kNoValue, 0.7, 0.75, 0.7, 0.1}) == 7);
  CHECK(progress.reason() == "no better loss than 0.7 of round 5 in 2 evaluations");
  RunProgress patient(stop_by_loss(3));
  CHECK(ended_in(patient, {0.9, 0.9, 0.9, 0.8, 0.9, 0.9}) == 0);
  CHECK(patient.reason().empty());
}

TEST_CASE("progress: small steps count as none") {
  RunProgress progress(stop_by_loss(3, 0.1));
  CHECK(ended_in(progress, {0.9, 0.85, 0.81, 0.805, 0.7}) == 4);
  RunProgress any(stop_by_loss(3));
  CHECK(ended_in(any, {0.9, 0.85, 0.81, 0.805, 0.7}) == 0);
}

TEST_CASE("progress: a run ends once a value is reached, from either side") {
  RunProgress loss({.stop = {.metric = run::SelectionMetric::kLoss, .reaches = 0.5}});
  CHECK(ended_in(loss, {0.9, 0.5, 0.1}) == 2);
  CHECK(loss.reason() == "loss has reached 0.5");
  RunProgress accuracy({.stop = {.metric = run::SelectionMetric::kAccuracy, .patience = 5, .reaches = 0.5}});
  CHECK(ended_in(accuracy, {0.9, 0.75, 0.25, 0.1}) == 3);
  CHECK(accuracy.reason() == "accuracy has reached 0.5");
}

TEST_CASE("progress: the best model is the first with the best value that is finite") {
  RunProgress progress({.keep_best = run::SelectionMetric::kLoss});
  std::vector<bool> best;
  for (const double loss : {kNoValue, 0.5, 0.4, 0.4, std::numeric_limits<double>::infinity(), 0.45}) {
    RoundMetrics round;
    round.round = best.size() + 1;
    round.test_loss = loss;
    best.push_back(progress.add(round));
  }
  CHECK(best == std::vector<bool>{false, true, true, false, false, false});
  CHECK(progress.state().kept == RunProgress::Best{3, 0.4});
}

TEST_CASE("progress: without an evaluation by the coordinator, the clients' counts") {
  RoundMetrics round;
  round.evaluation.emplace();
  round.evaluation->loss = 0.25;
  round.evaluation->rmse = 4;
  CHECK(value_of(run::SelectionMetric::kLoss, round) == 0.25);
  CHECK(value_of(run::SelectionMetric::kRmse, round) == 4);
  CHECK(std::isnan(value_of(run::SelectionMetric::kAuroc, round)));
  round.test_loss = 0.5;
  round.test.rmse = 3;
  CHECK(value_of(run::SelectionMetric::kLoss, round) == 0.5);
  CHECK(value_of(run::SelectionMetric::kRmse, round) == 3);
}

}  // namespace fedge::server
