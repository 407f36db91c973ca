// BlockPlanner: federated block coordinate descent. The layers of a model form blocks x_1 .. x_B; in round t
// all clients train block b_t and send only that, so only one block travels in a round, in each direction
// (Wang, Cao, Chen, "ParaBlock", TMLR 2026, arXiv:2511.19959, whose abstract names the method). The schedules
// are reconstructed; no block follows itself if there are several:
//   cyclic        b_t = t mod B
//   permutation   every B rounds train all blocks in a new random order
//   uniform       b_t is any block but b_(t-1), all equally likely
//   importance    b_t is any block but b_(t-1), with a probability in proportion to the mean norm of the
//                 updates that trained it last; blocks without such a norm come first, in their order
// The block of round t may be asked for while round t - 1 is running: the norms of that round do not matter,
// because its block is excluded. Memory: 4 bytes a round with the last two schedules.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "aggregation/planners/planner.h"

namespace fedge::aggregation {

enum class BlockSchedule { kCyclic, kPermutation, kUniform, kImportance };
// What the first and the last layer are: a block each, one block together, or not trained.
enum class BlockEnds { kApart, kTogether, kFrozen };

struct BlockOptions {
  BlockSchedule schedule = BlockSchedule::kPermutation;
  BlockEnds ends = BlockEnds::kApart;
};

// The blocks of a model: the trainable tensors of each layer index of the layout. kInvalid if there is none.
Result<std::vector<Coverage>> blocks_of(const ParameterLayout& layout, BlockEnds ends);

class BlockPlanner final : public Planner {
 public:
  static Result<std::unique_ptr<Planner>> make(const BlockOptions& options, const PlannerContext& context);

  Coverage plan(const PlanRequest& request) override { return blocks_[block_in(request.round)]; }
  double share(ClientId) const override { return share_; }
  void observe(RoundNumber round, double norm) override;
  // The index of the block of this round, from 1 on.
  std::size_t block_in(RoundNumber round);

 private:
  BlockPlanner() : rng_(0) {}
  std::vector<std::uint32_t> permutation(std::uint64_t epoch) const;
  std::size_t permuted(std::uint64_t position) const;
  // Extends chosen_ by the block of the next round.
  void choose();
  std::size_t by_importance(Rng rng, std::optional<std::size_t> former) const;

  std::vector<Coverage> blocks_;
  double share_ = 1;  // of the parameters, in the mean over the blocks
  BlockSchedule schedule_ = BlockSchedule::kPermutation;
  Rng rng_;
  std::vector<std::uint32_t> chosen_;         // uniform, importance: by round, from round 1 on
  std::vector<std::optional<double>> norms_;  // importance: by round, from round 1 on
};

PlannerPart read_block(config::Reader& section);

}  // namespace fedge::aggregation
