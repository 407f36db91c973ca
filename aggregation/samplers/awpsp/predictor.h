// What is known of a client's comings and goings, and what follows from it for the next round: the predictor
// of AW-PSP (Behfar and Mortier 2026, arXiv:2604.16090) as its authors' code has it, and a Markov chain in
// its place. docs/algorithms/aw-psp.md has the symbols. Pure functions; O(1) each.
//
// A round gives two kinds of evidence. Of every known client: whether it is there when the round begins. Of a
// client that is asked: whether it delivers. The predicted chance A-hat is that of both, before the round
// begins: P(there at the next round | its past) * P(delivers | there and asked).
#pragma once

#include <cstdint>

namespace fedge::aggregation {

struct PredictorOptions {
  // kMarkov: transitions counted with Beta(1, 1) priors and forgotten. kWindow: the authors' code, means over
  // the last five.
  enum class Kind { kMarkov, kWindow };
  Kind kind = Kind::kMarkov;
  double forgetting = 0.95;  // rho: what a count is worth a round later, in (0, 1]
  int horizon = 1;           // rounds ahead that a Markov prediction is made for
};

// 48 bytes. A fresh one is of a client of which nothing is known.
struct Availability {
  static constexpr int kWindow = 64;     // rounds that `down` and `failed` hold
  static constexpr int kMeanWindow = 5;  // W of the authors' code

  std::uint64_t down = 0;    // bit k: it was not there k rounds ago
  std::uint64_t failed = 0;  // bit k: it was not there k rounds ago, or was asked and did not deliver
  float stayed = 0;          // transitions between rounds, forgotten: there, there (n_UU)
  float left = 0;            // n_UD
  float returned = 0;        // n_DU
  float remained_down = 0;   // n_DD
  float delivered = 0;       // tasks, forgotten by task
  float undelivered = 0;
  float chance = 0.5F;  // A-hat of the round that was observed last, as it was seen before it began
  std::uint16_t down_run : 14 = 0;  // rounds in a row that it has not been there, until it is again
  std::uint16_t chronic : 1 = 0;    // presumed gone for good, until a probe finds it
  std::uint16_t asked : 1 = 0;      // it has a task whose end is not known
  std::uint8_t rounds : 7 = 0;      // that it has been observed in, at most kWindow
  std::uint8_t known : 1 = 0;
  std::uint8_t results : 5 = 0;        // bit k: delivered k tasks ago
  std::uint8_t results_known : 3 = 0;  // at most kMeanWindow
};

// A round begins: `there` or not. What had been predicted for it is kept in `chance`.
void observe_round(Availability& state, bool there, const PredictorOptions& options);
// A task ends. One that was not delivered makes this round one of failure.
void observe_task(Availability& state, bool delivered, const PredictorOptions& options);

// p_UU = (n_UU + 1) / (n_UU + n_UD + 2), p_DU = (n_DU + 1) / (n_DU + n_DD + 2).
double chance_to_stay(const Availability& state);
double chance_to_return(const Availability& state);

// Chance of being up in k >= 0 rounds of a chain that is up now with chance s:
// pi + (p_UU - p_DU)^k (s - pi), pi = p_DU / (1 - p_UU + p_DU); s where the chain cannot move.
double steps_ahead(double stay, double come_back, double now, int steps);

// The authors' one-step prediction: a + (1 - a) / 2 with a = (mean of computing) * (mean of communicating).
double window_prediction(double computing, double communicating);

// A-hat in (0, 1]: the chance, seen from the last observed round, that the client is there when the next
// round begins (with a horizon of k: k rounds on) and delivers if it is asked. kMarkov: the chain's
// prediction times (delivered + 1) / (delivered + undelivered + 1), so that who was never asked counts as one
// who delivers. kWindow: window_prediction() of the last five results and rounds; without any result, of the
// rounds alone; of nothing at all 1/2.
double predicted_chance(const Availability& state, const PredictorOptions& options);

// Whether a client that is down is so for longer than chance explains: down for H = 5 rounds or more with
// P(back within H) = 1 - (1 - p_DU)^H < 0.2, or for more than the 95 % quantile ln 0.05 / ln(1 - p_DU) of its
// down times.
bool is_gone(const Availability& state);

}  // namespace fedge::aggregation
