// Parts as a user's program registers them, which work as a built-in part and declare what a test needs.
#pragma once

#include <memory>

#include "aggregation/aggregators/mean.h"
#include "aggregation/aggregators/registry.h"
#include "aggregation/samplers/poisson.h"
#include "aggregation/samplers/uniform.h"

namespace fedge::test {

// A sampler of the user that selects as a built-in one and declares these traits.
template <class Like>
class OwnSamplerWith final : public aggregation::Sampler {
 public:
  OwnSamplerWith(aggregation::SamplerTraits traits, Like like) : traits_(traits), like_(std::move(like)) {}
  aggregation::SamplerTraits traits() const override { return traits_; }
  std::vector<aggregation::Selected> select(const aggregation::SelectionRequest& request) override {
    return like_.select(request);
  }

 private:
  aggregation::SamplerTraits traits_;
  Like like_;
};

// The factory of a sampler that selects uniformly and declares these traits.
inline aggregation::SamplerFactory own_uniform(aggregation::SamplerTraits traits) {
  return [traits] {
    return std::make_unique<OwnSamplerWith<aggregation::UniformSampler>>(traits,
                                                                         aggregation::UniformSampler());
  };
}

// Registers, once:
//   own_unweighted  uniform_mean, with its traits
//   own_unsaid      uniform_mean, without uniform_weights
//   own_steps       a linear rule that counts steps
//   own_basis       a rule that changes the basis of adapters
//   own_base        uniform_mean, which changes frozen weights
//   own_blind       uniform, with its traits
//   own_seeing      uniform, which declares nothing
//   own_draws       poisson, with its traits
//   own_presence    uniform, which estimates availability and reads clients' records
inline void register_own_traits() {
  using namespace aggregation;
  static const bool registered = [] {
    constexpr AggregatorTraits kSum = {.linear = true, .takes_sums = true, .partial_updates = true};
    AggregatorTraits unweighted = kSum;
    unweighted.uniform_weights = true;
    const auto aggregator = [](const char* name, AggregatorTraits traits) {
      register_aggregator(
          {.name = name, .paper = "", .summary = "", .traits = traits, .read = read_uniform_mean});
    };
    aggregator("own_unweighted", unweighted);
    aggregator("own_unsaid", kSum);
    aggregator("own_steps", {.linear = true, .counts_steps = true});
    aggregator("own_basis",
               {.keeps_individuals = true, .partial_updates = true, .adapters = true, .changes_basis = true});
    AggregatorTraits base = kSum;
    base.changes_base = true;
    aggregator("own_base", base);
    const auto sampler = [](const char* name, SamplerFactory (*read)(config::Reader&)) {
      register_sampler({.name = name, .paper = "", .summary = "", .read = read});
    };
    sampler("own_blind", [](config::Reader&) { return own_uniform({.blind = true}); });
    sampler("own_seeing", [](config::Reader&) { return own_uniform({}); });
    sampler("own_draws", [](config::Reader&) -> SamplerFactory {
      const PoissonSampler poisson({});
      return
          [poisson] { return std::make_unique<OwnSamplerWith<PoissonSampler>>(poisson.traits(), poisson); };
    });
    sampler("own_presence", [](config::Reader&) {
      return own_uniform({.estimates_availability = true, .reads_records = true});
    });
    return true;
  }();
  (void)registered;
}

}  // namespace fedge::test
