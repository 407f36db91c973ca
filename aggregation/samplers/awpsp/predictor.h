// Predicts a client's availability from its history: the predictor of AW-PSP (Behfar and Mortier 2026,
// arXiv:2604.16090) as in its authors' code, or a Markov chain instead. docs/algorithms/aw-psp.md defines the
// symbols. Pure functions; O(1) each.
//
// A round gives two kinds of evidence: whether each known client is up when the round begins, and whether
// each selected client delivers. The predicted chance A-hat, made before the round begins, covers both: P(up
// at the next round | its past) * P(delivers | up and selected).
#pragma once

#include <cstdint>

namespace fedge::aggregation {

struct PredictorOptions {
  // kMarkov: counts of transitions with Beta(1, 1) priors and exponential forgetting. kWindow: the authors'
  // code, means over the last five rounds and results.
  enum class Kind { kMarkov, kWindow };
  Kind kind = Kind::kMarkov;
  double forgetting = 0.95;  // rho: weight of a count one round later, in (0, 1]
  int horizon = 1;           // rounds ahead of a Markov prediction
};

// 48 bytes. The initial value describes an unknown client.
struct Availability {
  static constexpr int kWindow = 64;     // rounds that `down` and `failed` hold
  static constexpr int kMeanWindow = 5;  // W of the authors' code

  std::uint64_t down = 0;    // bit k: down k rounds ago
  std::uint64_t failed = 0;  // bit k: k rounds ago down, or selected without delivering
  float stayed = 0;          // transitions between rounds, with forgetting: up, up (n_UU)
  float left = 0;            // n_UD
  float returned = 0;        // n_DU
  float remained_down = 0;   // n_DD
  float delivered = 0;       // tasks, with forgetting by task
  float undelivered = 0;
  float chance = 0.5F;              // A-hat of the last observed round, as predicted before it began
  std::uint16_t down_run : 14 = 0;  // rounds of the current or last absence; kept until a probe succeeds
  std::uint16_t chronic : 1 = 0;    // presumed offline until a probe
  std::uint16_t asked : 1 = 0;      // has an open task
  std::uint8_t rounds : 7 = 0;      // rounds observed, at most kWindow
  std::uint8_t known : 1 = 0;
  std::uint8_t results : 5 = 0;        // bit k: delivered k tasks ago
  std::uint8_t results_known : 3 = 0;  // at most kMeanWindow
};

// Records that a round begins with the client up (`there`) or down. `chance` keeps the prediction for this
// round.
void observe_round(Availability& state, bool there, const PredictorOptions& options);
// Records the end of a task. If it was not delivered, this round counts as failed.
void observe_task(Availability& state, bool delivered, const PredictorOptions& options);

// p_UU = (n_UU + 1) / (n_UU + n_UD + 2), p_DU = (n_DU + 1) / (n_DU + n_DD + 2).
double chance_to_stay(const Availability& state);
double chance_to_return(const Availability& state);

// Chance of being up in k >= 0 rounds of a chain that is up now with chance s: pi + (p_UU - p_DU)^k (s - pi),
// pi = p_DU / (1 - p_UU + p_DU); s if the chain cannot move.
double steps_ahead(double stay, double come_back, double now, int steps);

// The authors' one-step prediction: a + (1 - a) / 2 with a = (mean of computing) * (mean of communicating).
double window_prediction(double computing, double communicating);

// A-hat in (0, 1]: the chance, seen from the last observed round, that the client is up when the next round
// begins (with a horizon of k: k rounds on) and delivers if selected. kMarkov: the chain's prediction times
// (delivered + 1) / (delivered + undelivered + 1); a client never selected is assumed to deliver. kWindow:
// window_prediction() of the last five results and rounds; without results, of the rounds alone; without
// rounds, 1/2.
double predicted_chance(const Availability& state, const PredictorOptions& options);

// True if a client is down for longer than chance explains. First rule: down for at least H = 5 rounds with
// P(back within H) = 1 - (1 - p_DU)^H < 0.2. Second rule: down for more than the 95 % quantile
// ln 0.05 / ln(1 - p_DU) of its down times.
bool is_gone(const Availability& state);

}  // namespace fedge::aggregation
