// Runs with differential privacy, in virtual time.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "tests/unit/sim/simulated_run.h"

namespace fedge::sim {
namespace {

const Settings kPrivateBase = {"data.partition.clients=20", "run.round_deadline=60"};
const Settings kCentral = {"differential_privacy.kind=central", "differential_privacy.noise_multiplier=1.0"};
const Settings kDistributed = {"sampling.clients_per_round=10",
                               "secure_aggregation.kind=compact",
                               "secure_aggregation.min_clients=3",
                               "differential_privacy.kind=distributed",
                               "differential_privacy.noise_multiplier=1.0",
                               "differential_privacy.max_participations=3"};

const Settings kTree = {"differential_privacy.kind=tree", "differential_privacy.noise_multiplier=1.0"};
const Settings kLocal = {"differential_privacy.kind=local", "differential_privacy.noise_multiplier=1.0"};

}  // namespace

TEST_CASE("private, simulated: the same file and seed give the same models, another seed others") {
  Settings how = kPrivateBase;
  SUBCASE("central") { how = how + kCentral; }
  SUBCASE("by layers") { how = how + kCentral + Settings{"differential_privacy.clipping=per_layer"}; }
  SUBCASE("adaptive") {
    how = how + kCentral +
          Settings{"differential_privacy.clipping=adaptive", "differential_privacy.count_noise=0.6"};
  }
  SUBCASE("along a tree") { how = how + kTree; }
  SUBCASE("of single updates") { how = how + kLocal; }
  SUBCASE("of single updates, compressed") { how = how + kLocal + Settings{"compression.kind=int8"}; }
  SUBCASE("of single updates, summed in secret") {
    how = how + kLocal + Settings{"secure_aggregation.kind=exact", "secure_aggregation.min_clients=2"};
  }
  SUBCASE("central, summed in secret") {
    how = how + kCentral + Settings{"secure_aggregation.kind=exact", "secure_aggregation.min_clients=2"};
  }
  SUBCASE("distributed") { how = how + kDistributed; }
  SUBCASE("distributed, Skellam") {
    how = how + kDistributed + Settings{"differential_privacy.noise=skellam"};
  }
  SUBCASE("distributed, in words of 64 bits") {
    how = how + kDistributed + Settings{"secure_aggregation.kind=exact"};
  }
  const Outcome one = simulate(how, {.threads = 1});
  const Outcome two = simulate(how, {.threads = 2});
  CHECK(one.hashes() == two.hashes());
  CHECK(one.hashes() != simulate(how + Settings{"run.seed=6"}).hashes());
  for (std::size_t r = 1; r < one.models.size(); ++r) CHECK(one.models[r] != one.models[r - 1]);
  double before = 0;
  for (const auto& round : one.rounds) {
    CHECK(round.epsilon >= before);  // with a tree, not every round increases the cost
    CHECK(round.epsilon > 0);
    before = round.epsilon;
    CHECK(std::isnan(round.train_loss));  // the loss would carry no noise
    CHECK(round.clipping_norm > 0);
  }
  CHECK(one.count("round.not_aggregated") == 0);
}

TEST_CASE("private, simulated: an update counts as much as its noise is measured for, whatever max_abs is") {
  const Settings faint = kPrivateBase + Settings{"differential_privacy.kind=central", "run.rounds=1",
                                                 "differential_privacy.noise_multiplier=0.001"};
  const Outcome narrow = simulate(faint);
  const Outcome wide = simulate(faint + Settings{"strategy.max_abs=1e9", "strategy.fraction_bits=10"});
  double step = 0;
  double apart = 0;
  for (std::size_t i = 0; i < narrow.models[1].size(); ++i) {
    const auto moved = [&](const Outcome& run) {
      return static_cast<double>(run.models[1][i]) - static_cast<double>(run.models[0][i]);
    };
    step += moved(narrow) * moved(narrow);
    apart += (moved(wide) - moved(narrow)) * (moved(wide) - moved(narrow));
  }
  CHECK(std::sqrt(step) > 0.2);
  CHECK(std::sqrt(apart) < 0.1);
}

TEST_CASE("private, simulated: with next to no noise the models are those of the clipped mean") {
  const Settings whole = {"data.partition.clients=20", "sampling.clients_per_round=20",
                          "strategy.aggregator.kind=uniform_mean"};
  const Settings faint = {"differential_privacy.kind=central", "differential_privacy.noise_multiplier=1e-6",
                          "differential_privacy.clipping_norm=1000"};
  const Outcome plain = simulate(whole);
  const Outcome noisy = simulate(whole + faint);
  REQUIRE(plain.models.size() == noisy.models.size());
  for (std::size_t p = 0; p < plain.models[3].size(); ++p)
    CHECK(std::abs(plain.models[3][p] - noisy.models[3][p]) < 1e-2F);
  // The clipped updates of all twenty clients have the same norm.
  const Outcome clipped = simulate(whole + Settings{"differential_privacy.kind=central",
                                                    "differential_privacy.noise_multiplier=1e-6",
                                                    "differential_privacy.clipping_norm=1e-3"});
  for (std::size_t r = 1; r < clipped.models.size(); ++r) {
    double squares = 0;
    for (std::size_t p = 0; p < clipped.models[r].size(); ++p)
      squares += std::pow(static_cast<double>(clipped.models[r][p] - clipped.models[r - 1][p]), 2);
    CHECK(std::sqrt(squares) < 1.01e-3);
    CHECK(std::sqrt(squares) > 1e-4);
  }
}

TEST_CASE("private, simulated: the noise in the model is what its multiplier says, whoever made it") {
  // With a learning rate of 0, only noise moves the model.
  Settings how = {"data.partition.clients=20", "sampling.clients_per_round=20",
                  "training.optimizer.learning_rate=0", "differential_privacy.clipping_norm=4"};
  double clients = 1;  // clients whose noise is in the sum, per client that is required
  SUBCASE("central") { how = how + kCentral; }
  SUBCASE("distributed") { how = how + kDistributed, clients = 20.0 / 2; }
  SUBCASE("distributed, Skellam") {
    how = how + kDistributed + Settings{"differential_privacy.noise=skellam"};
    clients = 20.0 / 2;
  }
  // Each of the twenty adds noise for twice the norm.
  SUBCASE("of single updates") {
    how = how + kLocal + Settings{"differential_privacy.max_participations=3"};
    clients = 20 * 2 * 2;
  }
  const Outcome run = simulate(how + Settings{"sampling.clients_per_round=20"});
  double squares = 0;
  double count = 0;
  for (std::size_t r = 1; r < run.models.size(); ++r) {
    CHECK(run.rounds[r - 1].clients_completed == 20);
    for (std::size_t p = 0; p < run.models[r].size(); ++p) {
      squares +=
          std::pow(static_cast<double>(run.models[r][p]) - static_cast<double>(run.models[r - 1][p]), 2);
      ++count;
    }
  }
  CHECK(count > 20'000);
  const double expected = std::sqrt(clients) * 4 / 20;
  // Six standard errors.
  CHECK(std::abs(squares / count / (expected * expected) - 1) < 6 * std::sqrt(2 / count) + 1e-3);
}

TEST_CASE("private, simulated: who has sent as many updates as its privacy allows sends no more") {
  // Twenty clients, five a round, each once: all have taken part after four rounds.
  const Outcome once =
      simulate(kPrivateBase + kLocal + Settings{"sampling.clients_per_round=5", "run.rounds=4"});
  for (const auto& round : once.rounds) {
    CHECK(round.clients_completed == 5);
    CHECK(round.epsilon == once.rounds[0].epsilon);
  }
  CHECK(once.rounds[3].participation.gap == 0);
  // A robust rule on noised updates. With tracks, a client sends one update a round.
  const Outcome median = simulate(kPrivateBase + kLocal + Settings{"strategy.kind=median"});
  CHECK(median.count("round.not_aggregated") == 0);
  CHECK(median.hashes() != simulate(kPrivateBase + kLocal).hashes());
}

TEST_CASE("private, simulated: along a tree two rounds together have the noise of one") {
  const Outcome run =
      simulate(Settings{"data.partition.clients=40", "sampling.clients_per_round=10", "run.rounds=4",
                        "training.optimizer.learning_rate=0", "differential_privacy.clipping_norm=4"} +
               kTree);
  REQUIRE(run.models.size() == 5);
  const auto square = [&](std::size_t to) {
    double squares = 0;
    for (std::size_t p = 0; p < run.models[to].size(); ++p)
      squares += std::pow(static_cast<double>(run.models[to][p]) - static_cast<double>(run.models[0][p]), 2);
    return squares / static_cast<double>(run.models[to].size()) / (0.4 * 0.4);
  };
  // The variance is proportional to the number of ones in the round's binary number.
  CHECK(square(1) == doctest::Approx(1).epsilon(0.1));
  CHECK(square(2) == doctest::Approx(1).epsilon(0.1));
  CHECK(square(3) == doctest::Approx(2).epsilon(0.1));
  CHECK(square(4) == doctest::Approx(1).epsilon(0.1));
}

TEST_CASE("private, simulated: the run ends before the round that would cost too much") {
  const Outcome run =
      simulate(kPrivateBase + kCentral + Settings{"run.rounds=50", "differential_privacy.epsilon=4"});
  CHECK(run.rounds.size() > 1);
  CHECK(run.rounds.size() < 50);
  CHECK(run.rounds.back().epsilon <= 4);
  const Outcome longer =
      simulate(kPrivateBase + kCentral + Settings{"run.rounds=" + std::to_string(run.rounds.size() + 1)});
  CHECK(longer.rounds.back().epsilon > 4);
  CHECK(longer.rounds[run.rounds.size() - 1].epsilon == run.rounds.back().epsilon);
}

TEST_CASE("private, simulated: a round that nobody was drawn for is noise all the same") {
  const Outcome run = simulate(kPrivateBase + kCentral + Settings{"sampling.rate=1e-9"});
  REQUIRE(run.rounds.size() == 3);
  for (std::size_t r = 1; r < run.models.size(); ++r) {
    CHECK(run.rounds[r - 1].clients_selected == 0);
    CHECK(run.models[r] != run.models[r - 1]);
  }
}

TEST_CASE("private, simulated: each track's model is a release of its own") {
  const Settings tracks = {
      "tracks.disagreement=[{ kind = \"inbound\", clients = [\"0\", \"1\", \"2\", \"4\"], against = [\"3\"] "
      "}]"};
  const Outcome one = simulate(kPrivateBase + kCentral);
  const Outcome two = simulate(kPrivateBase + kCentral + tracks);
  for (std::size_t r = 0; r < 3; ++r) CHECK(two.rounds[r].epsilon > one.rounds[r].epsilon);
  const Outcome six = simulate(kPrivateBase + kCentral + Settings{"run.rounds=6"});
  CHECK(two.rounds[2].epsilon == six.rounds[5].epsilon);
  // A budget of five releases permits two rounds of two tracks.
  const std::string budget = std::to_string(six.rounds[4].epsilon + 1e-6);
  const Outcome ended =
      simulate(kPrivateBase + kCentral + tracks + Settings{"differential_privacy.epsilon=" + budget});
  CHECK(ended.rounds.size() == 2);
}

}  // namespace fedge::sim
