#include "apps/simulation/comparison/curves.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "apps/simulation/results/column.h"

namespace fedge::apps {

Quantity metric_quantity(std::string name) {
  return [name = std::move(name)](const FinishedRun& run) { return metric_of(run.rounds, name); };
}

Quantity traffic_quantity(bool up, bool down) {
  return [=](const FinishedRun& run) {
    std::vector<double> sums;
    double sum = 0;
    for (const server::RoundMetrics& round : run.rounds) {
      if (up) sum += static_cast<double>(round.bytes_up);
      if (down) sum += static_cast<double>(round.bytes_down);
      sums.push_back(sum);
    }
    return sums;
  };
}

Quantity energy_quantity() {
  return [](const FinishedRun& run) {
    std::vector<double> sums;
    for (std::size_t i = 0; i < run.rounds.size(); ++i)
      sums.push_back(run.rounds[i].energy.shown() + (i > 0 ? sums.back() : 0));
    return sums;
  };
}

Quantity round_quantity() {
  return [](const FinishedRun& run) {
    std::vector<double> rounds;
    for (const server::RoundMetrics& round : run.rounds) rounds.push_back(static_cast<double>(round.round));
    return rounds;
  };
}

std::vector<SampleSummary> over_runs(const RunGroup& group, const Quantity& quantity) {
  std::vector<std::vector<double>> values;
  std::size_t rounds = group.runs.empty() ? 0 : group.runs.front().rounds.size();
  for (const FinishedRun& run : group.runs) {
    values.push_back(quantity(run));
    rounds = std::min(rounds, run.rounds.size());
  }
  std::vector<SampleSummary> summaries;
  std::vector<double> at_round;
  for (std::size_t i = 0; i < rounds; ++i) {
    at_round.clear();
    for (const auto& of_run : values) at_round.push_back(of_run[i]);
    summaries.push_back(summarise(at_round));
  }
  return summaries;
}

server::Band band_of(const RunGroup& group, const Quantity& x, const Quantity& y) {
  server::Band band{.name = group.name};
  const auto xs = over_runs(group, x);
  const auto ys = over_runs(group, y);
  for (std::size_t i = 0; i < ys.size(); ++i) {
    if (ys[i].count < group.runs.size() || xs[i].count < group.runs.size()) continue;
    band.x.push_back(xs[i].mean);
    band.middle.push_back(ys[i].mean);
    if (group.runs.size() < 2) continue;
    band.low.push_back(ys[i].mean - ys[i].standard_deviation);
    band.high.push_back(ys[i].mean + ys[i].standard_deviation);
  }
  return band;
}

}  // namespace fedge::apps
