// RankPrefixPlanner: a client holds and trains the first ranks of every adapter (core/adapter_layout.h), as
// many as its device can. The rank of a client is drawn once for a run or declared by the device. A client
// may ask for fewer later (HetLoRA's self-pruning; Cho et al., EMNLP 2024, section 3.2).
// Memory: 3 bytes a client. A plan is one range; for the factors B alone, one range a rank.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "aggregation/planners/levels.h"
#include "aggregation/planners/planner.h"
#include "core/adapter_layout.h"

namespace fedge::aggregation {

struct RankOptions {
  std::vector<std::size_t> ranks = {4, 8, 16, 32};
  Levels levels;         // of the clients: each share is a rank over the highest rank
  bool b_alone = false;  // A keeps its initial values (FFA-LoRA; Sun et al., ICLR 2024)
};

class RankPrefixPlanner final : public Planner {
 public:
  // Refuses a model without adapters, and ranks above those of the adapters.
  static Result<std::unique_ptr<Planner>> make(const RankOptions& options, const PlannerContext& context);

  Coverage plan(const PlanRequest& request) override;
  double share(ClientId client) const override;
  void admit(ClientId client, double capability) override;
  void limit(ClientId client, double share) override;

  std::size_t rank(ClientId client) const;

 private:
  RankPrefixPlanner() = default;
  Coverage coverage(std::size_t rank) const;

  RankOptions options_;
  AdapterLayout adapters_;
  std::size_t parameters_ = 0;
  Population population_;
  std::vector<std::uint16_t> limit_;  // by client: highest rank it accepts
};

PlannerPart read_rank_prefix(config::Reader& section);
PlannerPart read_rank_prefix_b(config::Reader& section);

}  // namespace fedge::aggregation
