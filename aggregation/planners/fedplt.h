// FedPLT (Dabaja and El-Azouzi 2026, arXiv:2605.02337; docs/algorithms/fedplt.md): each layer is cut
// into L equal sub-layers, groups of neighbouring rows of the weight with their biases. A client of
// activation a trains L * a of them, the same for the whole run; the ones it leaves out are dealt out
// cyclically, so that the numbers of clients that leave out two sub-layers differ by one at most.
//   L = least common multiple of the denominators of 1 - a_k over all clients
//   client k leaves out D_k = (1 - a_k) L sub-layers, from where client k - 1 ended
// Every divided layer has the same a_k and hence the same L and the same deal.
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
  Levels levels;              // every share a fraction of a denominator up to 1000
  bool split_output = false;  // if not, all clients train the whole last layer
};

class FedPltPlanner final : public Planner {
 public:
  // Refuses a divided layer whose units are no multiple of L, by its name.
  static Result<std::unique_ptr<Planner>> make(const FedPltOptions& options, const PlannerContext& context);

  Coverage plan(const PlanRequest& request) override;
  double share(ClientId client) const override { return shares_[population_.level(client)]; }
  void admit(ClientId client, double capability) override;

 private:
  FedPltPlanner() = default;
  // The client's part: the sub-layers it leaves out follow those of the client before it.
  void place(ClientId client);

  std::vector<PlanLayer> layers_;
  std::size_t divided_ = 0;            // the first so many layers are divided
  std::uint32_t sub_layers_ = 1;       // L
  std::vector<std::uint32_t> active_;  // by level: sub-layers trained
  std::vector<double> shares_;         // by level: r_k
  Population population_;
  std::vector<std::uint32_t> first_on_;  // by client: its first active sub-layer
  std::uint32_t next_off_ = 0;
};

PlannerFactory read_fedplt(config::Reader& section);

}  // namespace fedge::aggregation
