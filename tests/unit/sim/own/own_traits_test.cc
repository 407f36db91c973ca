// A part of a user's program that works as a built-in one and declares its traits gives the same models.
#include <doctest/doctest.h>

#include <string>

#include "tests/support/own_traits.h"
#include "tests/unit/sim/simulated_run.h"

namespace fedge::sim {
namespace {

std::vector<std::string> models_with(const std::string& part, const Settings& settings) {
  test::register_own_traits();
  return simulate(settings + Settings{part, "run.round_deadline=60"}).hashes();
}

}  // namespace

TEST_CASE("own traits, simulated: an aggregator with equal weights gives the models of uniform_mean") {
  Settings how;
  SUBCASE("clients with as many factors as draws") { how = {"sampling.kind=md"}; }
  SUBCASE("control variates") { how = {"training.objective.kind=scaffold"}; }
  SUBCASE("masked sums") { how = {"secure_aggregation.kind=exact"}; }
  SUBCASE("masked sums in words of 32 bits") {
    how = {"secure_aggregation.kind=compact", "strategy.max_abs=1"};
  }
  SUBCASE("the clients aggregate") { how = {"dissemination.kind=serverless"}; }
  SUBCASE("noisy sums") {
    how = {"differential_privacy.kind=central", "differential_privacy.noise_multiplier=1.0"};
  }
  how = how + Settings{"data.partition.kind=dirichlet", "data.partition.alpha=2"};  // of unequal sizes
  const auto models = models_with("strategy.aggregator.kind=own_unweighted", how);
  CHECK(models == models_with("strategy.aggregator.kind=uniform_mean", how));
  CHECK(models.front() != models.back());
}

TEST_CASE("own traits, simulated: a sampler that draws independently gives the private models of poisson") {
  const Settings noise = {"data.partition.clients=20", "differential_privacy.kind=central",
                          "differential_privacy.noise_multiplier=1.0"};
  const auto models = models_with("sampling.kind=own_draws", noise);
  CHECK(models == models_with("sampling.kind=poisson", noise));
  CHECK(models != models_with("sampling.kind=own_blind", noise));
}

}  // namespace fedge::sim
