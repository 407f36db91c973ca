// FedPLT (Dabaja and El-Azouzi 2026, arXiv:2605.02337; docs/algorithms/fedplt.md). Each layer is cut into L
// equal sub-layers, groups of neighbouring rows of the weight with their biases. A client of activation a
// trains L * a of them, by default the same ones for the whole run. The sub-layers left out are assigned
// cyclically: the numbers of clients that leave out any two sub-layers differ by at most one.
//   L = least common multiple of the denominators of 1 - a_k over all clients
//   client k leaves out D_k = (1 - a_k) L sub-layers, starting where client k - 1 ended
// Every divided layer has the same a_k and therefore the same L and assignment.
// The option `rotate` (ours, not the paper's) moves every client's part by one sub-layer a round, cyclically.
// The balance stays, and in L rounds a client trains every sub-layer equally often.
// Memory: 5 bytes a client.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "aggregation/planners/layers.h"
#include "aggregation/planners/levels.h"
#include "aggregation/planners/planner.h"

namespace fedge::aggregation {

struct FedPltOptions {
  Levels levels;              // every share is a fraction with a denominator up to 1000
  bool split_output = false;  // false: all clients train the whole last layer
  bool rotate = false;        // true: in round t, a client's part is t sub-layers further, cyclically
};

class FedPltPlanner final : public Planner {
 public:
  // kInvalid, naming the layer, if the units of a divided layer are no multiple of L.
  static Result<std::unique_ptr<Planner>> make(const FedPltOptions& options, const PlannerContext& context);

  Coverage plan(const PlanRequest& request) override;
  double share(ClientId client) const override { return shares_[population_.level(client)]; }
  void admit(ClientId client, double capability) override;

 private:
  FedPltPlanner() = default;
  // Assigns the client's part: the sub-layers it leaves out follow those of the previous client.
  void place(ClientId client);

  std::vector<PlanLayer> layers_;
  std::size_t divided_ = 0;            // number of divided layers, from the first on
  std::uint32_t sub_layers_ = 1;       // L
  std::vector<std::uint32_t> active_;  // by level: sub-layers trained
  std::vector<double> shares_;         // by level: r_k
  Population population_;
  std::vector<std::uint32_t> first_on_;  // by client: first active sub-layer
  std::uint32_t next_off_ = 0;
  bool rotate_ = false;
};

PlannerPart read_fedplt(config::Reader& section);

}  // namespace fedge::aggregation
