#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <vector>

#include "aggregation/samplers/awpsp/predictor.h"
#include "core/rng.h"

namespace fedge::aggregation {
namespace {

using PredictorKind = PredictorOptions::Kind;

Availability after(const std::vector<bool>& rounds, const std::vector<bool>& tasks,
                   const PredictorOptions& options) {
  Availability state;
  for (const bool there : rounds) observe_round(state, there, options);
  for (const bool delivered : tasks) observe_task(state, delivered, options);
  return state;
}

const std::vector<bool> kFiveOnes(5, true);
const std::vector<bool> kFiveZeros(5, false);
constexpr PredictorOptions kWindow{.kind = PredictorKind::kWindow};

// Transition counts and chances straight from the definition.
struct Chain {
  double uu = 0, ud = 0, du = 0, dd = 0;

  Chain(const std::vector<bool>& rounds, double forgetting) {
    for (std::size_t t = 1; t < rounds.size(); ++t) {
      const double worth = std::pow(forgetting, static_cast<double>(rounds.size() - 1 - t));
      double& count = rounds[t - 1] ? (rounds[t] ? uu : ud) : (rounds[t] ? du : dd);
      count += worth;
    }
  }
  double stay() const { return (uu + 1) / (uu + ud + 2); }
  double come_back() const { return (du + 1) / (du + dd + 2); }
};

}  // namespace

TEST_CASE(
    "aw_psp predictor: the authors' window gives 1, 1/2, 1/2 and 0.9 for ones, zeros, nothing and 0.8") {
  CHECK(window_prediction(1, 1) == 1.0);
  CHECK(window_prediction(0, 0) == 0.5);
  CHECK(window_prediction(0.8, 1) == doctest::Approx(0.9).epsilon(1e-12));
  CHECK(predicted_chance(after(kFiveOnes, kFiveOnes, kWindow), kWindow) == 1.0);
  CHECK(predicted_chance(after(kFiveZeros, kFiveZeros, kWindow), kWindow) == 0.5);
  CHECK(predicted_chance(Availability{}, kWindow) == 0.5);
  const Availability four_of_five = after(kFiveOnes, {true, true, false, true, true}, kWindow);
  CHECK(predicted_chance(four_of_five, kWindow) == doctest::Approx(0.9).epsilon(1e-12));
}

TEST_CASE("aw_psp predictor: the window forgets all but the last five rounds and tasks") {
  std::vector<bool> rounds(20, false);
  std::vector<bool> tasks(20, false);
  for (int i = 0; i < 5; ++i) {
    rounds.push_back(true);
    tasks.push_back(true);
  }
  CHECK(predicted_chance(after(rounds, tasks, kWindow), kWindow) == 1.0);
  // Up in two of the last five rounds: a = 0.4, and 0.4 + 0.6 / 2 = 0.7. The client never had a task.
  CHECK(predicted_chance(after({true, true, true, false, false, true, true, false}, {}, kWindow), kWindow) ==
        doctest::Approx(0.7).epsilon(1e-12));
}

TEST_CASE("aw_psp predictor: a Markov prediction is that of the counted and forgotten transitions") {
  CHECK(predicted_chance(Availability{}, {}) == 0.5);
  // up, up, down, up, up: n_UU = 2, n_UD = 1, n_DU = 1, so that it stays with 3/5 and returns with 2/3.
  const PredictorOptions keeps{.forgetting = 1.0};
  const Availability state = after({true, true, false, true, true}, {}, keeps);
  CHECK(chance_to_stay(state) == doctest::Approx(0.6).epsilon(1e-6));
  CHECK(chance_to_return(state) == doctest::Approx(2.0 / 3).epsilon(1e-6));
  CHECK(predicted_chance(state, keeps) == doctest::Approx(0.6).epsilon(1e-6));
  Rng rng(1);
  for (int trial = 0; trial < 200; ++trial) {
    std::vector<bool> rounds;
    const double up = rng.uniform();
    for (std::uint64_t i = 1 + rng.below(150); i > 0; --i) rounds.push_back(rng.uniform() < up);
    const Chain chain(rounds, 0.95);
    const Availability learned = after(rounds, {}, {});
    CHECK(chance_to_stay(learned) == doctest::Approx(chain.stay()).epsilon(1e-5));
    CHECK(chance_to_return(learned) == doctest::Approx(chain.come_back()).epsilon(1e-5));
    CHECK(predicted_chance(learned, {}) ==
          doctest::Approx(rounds.back() ? chain.stay() : chain.come_back()).epsilon(1e-5));
  }
}

TEST_CASE("aw_psp predictor: the chance of a round is kept as it was seen before the round") {
  Availability state;
  const PredictorOptions keeps{.forgetting = 1.0};
  observe_round(state, true, keeps);
  CHECK(state.chance == 0.5F);
  observe_round(state, false, keeps);
  CHECK(state.chance == 0.5F);  // it was up, and no transition from up was known
  observe_round(state, true, keeps);
  CHECK(state.chance == 0.5F);  // it was down, and no transition from down was known
  observe_round(state, true, keeps);
  CHECK(state.chance == doctest::Approx(1.0 / 3));  // n_UD = 1
}

TEST_CASE("aw_psp predictor: who delivers seldom is predicted less, who was never asked is not") {
  const PredictorOptions keeps{.forgetting = 1.0};
  const Availability idle = after({true, true}, {}, keeps);
  const Availability failing = after({true, true}, {true, false, false}, keeps);
  CHECK(predicted_chance(idle, keeps) == doctest::Approx(2.0 / 3));  // chance to stay up: (1 + 1) / (1 + 2)
  CHECK(predicted_chance(failing, keeps) == doctest::Approx(0.5 * 2.0 / 3));  // delivers: (1 + 1) / (3 + 1)
  CHECK((failing.failed & 1) == 1);
  CHECK((failing.down & 1) == 0);
}

TEST_CASE("aw_psp predictor: the formula for k steps is a power of the transition matrix") {
  for (const double stay : {0.0, 0.1, 0.5, 0.9, 1.0})
    for (const double come_back : {0.0, 0.05, 0.5, 1.0})
      for (const double now : {0.0, 0.3, 1.0}) {
        std::array<double, 2> chance = {now, 1 - now};  // chances of up and down
        for (int k = 0; k <= 12; ++k) {
          CAPTURE(stay);
          CAPTURE(come_back);
          CAPTURE(k);
          CHECK(steps_ahead(stay, come_back, now, k) == doctest::Approx(chance[0]).epsilon(1e-12));
          chance = {chance[0] * stay + chance[1] * come_back,
                    chance[0] * (1 - stay) + chance[1] * (1 - come_back)};
        }
      }
}

TEST_CASE("aw_psp predictor: a horizon predicts for so many rounds on") {
  const std::vector<bool> rounds = {true, true, false, true, false, false, true, true, false};
  const Chain chain(rounds, 0.95);
  double up = 0;  // down at present
  for (int k = 0; k < 7; ++k) up = up * chain.stay() + (1 - up) * chain.come_back();
  const PredictorOptions far{.horizon = 7};
  CHECK(predicted_chance(after(rounds, {}, far), far) == doctest::Approx(up).epsilon(1e-5));
}

TEST_CASE("aw_psp predictor: without forgetting, whoever never returned is gone after 22 rounds") {
  // p_DU = 1 / (L + 1): 1 - (1 - p)^5 is 0.2073 for L = 21 and 0.1993 for L = 22.
  const PredictorOptions keeps{.forgetting = 1.0};
  CHECK_FALSE(is_gone(after(std::vector<bool>(21, false), {}, keeps)));
  CHECK(is_gone(after(std::vector<bool>(22, false), {}, keeps)));
}

TEST_CASE("aw_psp predictor: gone is who the definition says, whatever the past") {
  Rng rng(2);
  for (int trial = 0; trial < 300; ++trial) {
    const double forgetting = rng.below(2) == 0 ? 0.95 : 0.8 + 0.2 * rng.uniform();
    const double up = rng.uniform();
    std::vector<bool> rounds;
    for (std::uint64_t i = rng.below(60); i > 0; --i) rounds.push_back(rng.uniform() < up);
    rounds.push_back(true);
    Availability state = after(rounds, {}, {.forgetting = forgetting});
    CHECK_FALSE(is_gone(state));
    for (int run = 1; run <= 80; ++run) {
      rounds.push_back(false);
      observe_round(state, false, {.forgetting = forgetting});
      const double p = Chain(rounds, forgetting).come_back();
      const double margin = run - std::log(0.05) / std::log(1 - p);
      const double seldom = 0.2 - (1 - std::pow(1 - p, 5));
      if (std::abs(margin) < 1e-3 || std::abs(seldom) < 1e-4) continue;  // beyond float precision
      CHECK(is_gone(state) == ((run >= 5 && seldom > 0) || margin > 0));
    }
  }
}

TEST_CASE("aw_psp predictor: a state is 48 bytes") { CHECK(sizeof(Availability) == 48); }

}  // namespace fedge::aggregation
