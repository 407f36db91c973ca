// A part of a user's program that works as a built-in one and declares its traits gives the same models.
#include <doctest/doctest.h>

#include <string>

#include "tests/support/faulty_parts.h"
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

TEST_CASE("own traits, simulated: an aggregator that declares sums and has none is named in an error") {
  static const bool registered = [] {
    aggregation::register_aggregator({.name = "own_sumless",
                                      .paper = "",
                                      .summary = "",
                                      .traits = {.linear = true, .takes_sums = true, .uniform_weights = true},
                                      .read = [](config::Reader&) -> aggregation::AggregatorPart {
                                        return {.make = [](const aggregation::AggregatorContext& context)
                                                    -> std::unique_ptr<aggregation::Aggregator> {
                                          return std::make_unique<test::FaultyAggregator>(
                                              "", context.layout->size());
                                        }};
                                      }});
    return true;
  }();
  REQUIRE(registered);
  const Settings own = {"strategy.aggregator.kind=own_sumless", "run.round_deadline=60"};
  const Outcome masked = try_simulate(own + Settings{"secure_aggregation.kind=exact"});
  CHECK(masked.count("the aggregator own_sumless: with takes_sums, add_sum() must be implemented") > 0);
  CHECK(masked.models.front() == masked.models.back());
  const Outcome noised = try_simulate(
      own + Settings{"differential_privacy.kind=central", "differential_privacy.noise_multiplier=1.0"});
  REQUIRE(noised.failure);
  CHECK(noised.failure->message ==
        "the aggregator own_sumless returned 0 sums for 7850 parameters; with takes_sums, sums() must return "
        "one for each");
}

}  // namespace fedge::sim
