// Planners that give a client a thinner network (slices.h), by the share of the width that it can train:
//   heterofl  the first units of each hidden layer, always the same (Diao, Ding, Tarokh, ICLR 2021)
//   fjord     the same part; each local step runs a random nested width (Horvath et al., NeurIPS 2021)
//   fedrolex  a window of units that starts one unit later in every round and wraps around, the same
//             for all clients of a width (Alam et al., NeurIPS 2022)
// Memory: 1 byte a client. Plans cost O(units of all layers).
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "aggregation/planners/layers.h"
#include "aggregation/planners/levels.h"
#include "aggregation/planners/planner.h"

namespace fedge::aggregation {

struct WidthOptions {
  Levels levels;
  bool match_parameters = false;  // shares are of all parameters, not of each layer's width
  bool rolling = false;           // the window moves by one unit in every round
};

class WidthPlanner final : public Planner {
 public:
  // Refuses a model that is no chain of layers, and a model whose slices would have too many ranges.
  static Result<std::unique_ptr<Planner>> make(const WidthOptions& options, const PlannerContext& context);

  Coverage plan(const PlanRequest& request) override;
  double share(ClientId client) const override { return shares_[population_.level(client)]; }
  void admit(ClientId client, double capability) override { population_.admit(client, capability); }

 private:
  WidthPlanner() = default;

  std::vector<PlanLayer> layers_;
  bool rolling_ = false;
  std::vector<std::vector<std::size_t>> units_;  // by level and layer: units kept
  std::vector<double> shares_;                   // by level: r_k
  Population population_;
};

PlannerPart read_heterofl(config::Reader& section);
PlannerPart read_fjord(config::Reader& section);
PlannerPart read_fedrolex(config::Reader& section);

}  // namespace fedge::aggregation
