// RandomMask: the baseline that isolates the effect of FedPLT's fixed assignment. A client of activation a
// trains round(a * units), at least one, random units of each layer, drawn anew in every round. Where fedplt
// applies, the number of units equals fedplt's. The whole network runs, as with fedplt. Plans cost O(units of
// all layers).
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "aggregation/planners/layers.h"
#include "aggregation/planners/levels.h"
#include "aggregation/planners/planner.h"

namespace fedge::aggregation {

struct RandomMaskOptions {
  Levels levels;
  bool split_output = false;  // false: all clients train the whole last layer
};

class RandomMaskPlanner final : public Planner {
 public:
  // Refuses layers so wide that scattered rows could exceed the ranges that a coverage may have.
  static Result<std::unique_ptr<Planner>> make(const RandomMaskOptions& options,
                                               const PlannerContext& context);

  Coverage plan(const PlanRequest& request) override;
  double share(ClientId client) const override { return shares_[population_.level(client)]; }
  void admit(ClientId client, double capability) override { population_.admit(client, capability); }

 private:
  RandomMaskPlanner() = default;

  std::vector<PlanLayer> layers_;
  std::vector<std::vector<std::size_t>> units_;  // by level and layer: units trained
  std::vector<double> shares_;                   // by level: r_k
  Population population_;
};

PlannerPart read_random_mask(config::Reader& section);

}  // namespace fedge::aggregation
