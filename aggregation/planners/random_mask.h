// RandomMask: the baseline that isolates what FedPLT's fixed assignment does. A client of activation
// a trains round(a * units), at least one, random units of each layer, drawn anew in every round; as
// many as with fedplt where fedplt applies. The whole network runs, as there.
// Plans cost O(units of all layers).
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
  bool split_output = false;  // if not, all clients train the whole last layer
};

class RandomMaskPlanner final : public Planner {
 public:
  // Refuses layers so wide that scattered rows could exceed the ranges of a coverage.
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

PlannerFactory read_random_mask(config::Reader& section);

}  // namespace fedge::aggregation
