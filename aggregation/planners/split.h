// SplitPlanner: split training (core/split/split_layout.h): a client trains the adapters of the model's first
// blocks, up to its cut, and the coordinator those of the others. The kinds of cuts:
//   fixed      `blocks` for all clients
//   random     drawn once for the run, evenly
//   resources  as many blocks as the client's device holds
//   adaptive   begins as `fixed`; after every `period` rounds, a client whose model does better than the mean
//   takes
//              blocks over, a slow one gives blocks up
// All stay between `least` and the number of blocks that the device holds. The adaptive rule is reconstructed
// from SplitFT (Shan, Zhang, Di, Liu, Lu, Liu, arXiv:2604.26388, 2026), whose abstract says that cuts follow
// resources and performance: over the clients that delivered an update in the period, with a_i the negative
// loss of the last one, t_i its time, z_i = (a_i - mean a) / (deviation of a + 1e-8) and d_i = (t_i - median
// t) / median t,
//   cut_i <- round(cut_i + gamma z_i - kappa max(0, d_i)), halves to even, at most one block away from cut_i.
// Memory: 48 bytes a client. A plan has at most two ranges a rank.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "aggregation/planners/levels.h"
#include "aggregation/planners/planner.h"
#include "core/split/split_layout.h"

namespace fedge::aggregation {

enum class CutKind { kFixed, kRandom, kResources, kAdaptive };

struct SplitOptions {
  CutKind kind = CutKind::kAdaptive;
  std::size_t blocks = 2;
  std::size_t least = 1;
  Levels levels = {
      .shares = {1.0}, .fractions = {1.0}, .declared = false};  // of the blocks that devices hold
  std::uint64_t period = 5;                                     // rounds
  double gamma = 1;
  double kappa = 2;
  std::size_t cut_ranks = 0;
};

class SplitPlanner final : public Planner {
 public:
  // Refuses a model without adapters, and numbers of blocks that it does not have.
  static Result<std::unique_ptr<Planner>> make(const SplitOptions& options, const PlannerContext& context);

  Coverage plan(const PlanRequest& request) override;
  double share(ClientId client) const override;
  void admit(ClientId client, double capability) override { population_.admit(client, capability); }
  void delivered(const Delivered& update) override;

  std::size_t cut(ClientId client) const;

 private:
  // Observations of the update that a client delivered last.
  struct Observed {
    std::uint64_t round = 0;  // 0: none
    double loss = 0;
    double seconds = 0;
  };
  SplitPlanner(SplitOptions options, SplitLayout layout, const PlannerContext& context);
  std::size_t most(ClientId client) const;
  void adapt(std::uint64_t first, std::uint64_t last);

  SplitOptions options_;
  SplitLayout layout_;
  std::size_t parameters_;
  Population population_;
  std::vector<std::uint16_t> cuts_;  // by client; not yet within its bounds
  std::vector<Observed> observed_;   // by client; adaptive
  std::uint64_t periods_ = 0;        // that have ended
};

PlannerPart read_split(config::Reader& section);

}  // namespace fedge::aggregation
