#include "aggregation/samplers/awpsp/predictor.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace fedge::aggregation {
namespace {

constexpr double kReturnProbability = 0.5;  // beta of the authors' code
constexpr int kReturnHorizon = 5;           // H
constexpr double kReturnsSeldom = 0.2;
constexpr double kDownTail = 0.05;
constexpr unsigned kMaxDownRun = (1U << 14) - 1;

// Share of set bits among the `known` latest; 1 if none is known.
double mean_of(std::uint64_t bits, int known) {
  if (known == 0) return 1;
  const std::uint64_t mask = (std::uint64_t{1} << known) - 1;
  return static_cast<double>(std::popcount(bits & mask)) / known;
}

double results_mean(const Availability& state) { return mean_of(state.results, state.results_known); }

}  // namespace

void observe_round(Availability& state, bool there, const PredictorOptions& options) {
  state.chance = static_cast<float>(predicted_chance(state, options));
  const auto forgetting = static_cast<float>(options.forgetting);
  state.stayed *= forgetting;
  state.left *= forgetting;
  state.returned *= forgetting;
  state.remained_down *= forgetting;
  if (state.rounds > 0) {
    const bool was_there = (state.down & 1) == 0;
    if (was_there)
      (there ? state.stayed : state.left) += 1;
    else
      (there ? state.returned : state.remained_down) += 1;
  }
  const std::uint64_t now = there ? 0 : 1;
  state.down = state.down << 1 | now;
  state.failed = state.failed << 1 | now;
  if (state.rounds < Availability::kWindow) ++state.rounds;
  // A client that still has to be probed keeps the length of its last absence.
  if (!there)
    state.down_run = std::min(state.down_run + 1U, kMaxDownRun) & kMaxDownRun;
  else if (!state.chronic)
    state.down_run = 0;
}

void observe_task(Availability& state, bool delivered, const PredictorOptions& options) {
  const auto forgetting = static_cast<float>(options.forgetting);
  state.delivered *= forgetting;
  state.undelivered *= forgetting;
  (delivered ? state.delivered : state.undelivered) += 1;
  state.results = static_cast<std::uint8_t>((state.results << 1 | (delivered ? 1 : 0)) & 0x1f);
  if (state.results_known < Availability::kMeanWindow) ++state.results_known;
  if (!delivered && state.rounds > 0) state.failed |= 1;
  state.asked = 0;
}

double chance_to_stay(const Availability& state) {
  return (double{state.stayed} + 1) / (double{state.stayed} + double{state.left} + 2);
}

double chance_to_return(const Availability& state) {
  return (double{state.returned} + 1) / (double{state.returned} + double{state.remained_down} + 2);
}

double steps_ahead(double stay, double come_back, double now, int steps) {
  const double leaving = 1 - stay + come_back;
  if (leaving == 0) return now;
  const double stationary = come_back / leaving;
  return stationary + std::pow(stay - come_back, steps) * (now - stationary);
}

double window_prediction(double computing, double communicating) {
  const double a = computing * communicating;
  return a + (1 - a) * kReturnProbability;
}

double predicted_chance(const Availability& state, const PredictorOptions& options) {
  if (options.kind == PredictorOptions::Kind::kWindow) {
    if (state.rounds == 0 && state.results_known == 0) return kReturnProbability;
    const int rounds = std::min<int>(state.rounds, Availability::kMeanWindow);
    return window_prediction(results_mean(state), mean_of(~state.down, rounds));
  }
  const bool there = (state.down & 1) == 0;
  const double live = options.horizon == 1 ? (there ? chance_to_stay(state) : chance_to_return(state))
                                           : steps_ahead(chance_to_stay(state), chance_to_return(state),
                                                         there ? 1.0 : 0.0, options.horizon);
  if (state.undelivered == 0) return live;  // saves a division for most clients
  const double delivers =
      (double{state.delivered} + 1) / (double{state.delivered} + double{state.undelivered} + 1);
  return live * delivers;
}

bool is_gone(const Availability& state) {
  const double p = chance_to_return(state);
  const double run = state.down_run;
  if (run >= kReturnHorizon && 1 - std::pow(1 - p, kReturnHorizon) < kReturnsSeldom) return true;
  // (1 - p)^run is at least 1 - run p, so most clients need no logarithm.
  return run * p > 1 - kDownTail && run > std::log(kDownTail) / std::log1p(-p);
}

}  // namespace fedge::aggregation
