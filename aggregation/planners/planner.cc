#include "aggregation/planners/planner.h"

#include <utility>
#include <vector>

#include "aggregation/planners/anycost.h"
#include "aggregation/planners/block.h"
#include "aggregation/planners/fedplt.h"
#include "aggregation/planners/layers.h"
#include "aggregation/planners/random_mask.h"
#include "aggregation/planners/rank_prefix.h"
#include "aggregation/planners/split.h"
#include "aggregation/planners/width.h"
#include "core/config/own_part.h"

namespace fedge::aggregation {
namespace {

class FullPlanner final : public Planner {
 public:
  static Result<std::unique_ptr<Planner>> make(const PlannerContext& context) {
    Coverage coverage = context.layout->trainable();
    if (coverage.empty()) return invalid("the model has no parameters to train");
    FEDGE_TRY_VOID(check_ranges(coverage.ranges().size()));
    return std::unique_ptr<Planner>(new FullPlanner(std::move(coverage), context.layout->size()));
  }

  Coverage plan(const PlanRequest&) override { return coverage_; }
  double share(ClientId) const override { return share_; }

 private:
  FullPlanner(Coverage coverage, std::size_t size)
      : coverage_(std::move(coverage)),
        share_(static_cast<double>(coverage_.count()) / static_cast<double>(size)) {}

  Coverage coverage_;
  double share_;
};

PlannerPart read_full(config::Reader&) { return {.make = FullPlanner::make}; }

std::vector<PlannerKind>& planner_table() {
  static std::vector<PlannerKind> kinds = {
      PlannerKind{"full",
                  "McMahan et al., AISTATS 2017, arXiv:1602.05629",
                  "Every client trains the whole model.",
                  {.whole_model = true},
                  read_full},
      PlannerKind{"fedplt",
                  "Dabaja and El-Azouzi 2026, arXiv:2605.02337",
                  "Every client runs the whole model and trains a fixed set of equal groups of rows in each "
                  "layer. Every group has the same number of clients.",
                  {.numbers_clients = true},
                  read_fedplt},
      PlannerKind{"random_mask",
                  "the baseline of fedplt without its assignment",
                  "As fedplt, but every client trains random rows, drawn again in every round.",
                  {.numbers_clients = true},
                  read_random_mask},
      PlannerKind{"heterofl",
                  "Diao et al., ICLR 2021, arXiv:2010.01264",
                  "A client trains the network that consists of the first units of each hidden layer.",
                  {.local_model = LocalModel::kSlice, .numbers_clients = true},
                  read_heterofl},
      PlannerKind{"fjord",
                  "Horvath et al., NeurIPS 2021, arXiv:2102.13451",
                  "As heterofl, but every local step uses a random width up to the width of the client.",
                  {.local_model = LocalModel::kNested, .numbers_clients = true},
                  read_fjord},
      PlannerKind{"fedrolex",
                  "Alam et al., NeurIPS 2022, arXiv:2212.01548",
                  "A client trains a window of units of each hidden layer. The window moves by one unit in "
                  "every round.",
                  {.local_model = LocalModel::kSlice, .numbers_clients = true},
                  read_fedrolex},
      PlannerKind{"anycost",
                  "Li et al., INFOCOM 2023; reconstructed",
                  "A client trains the most important units of each hidden layer, as many as its limits of "
                  "time and energy allow. The coordinator sorts the units in every round.",
                  {.local_model = LocalModel::kSlice, .reads_samples = true, .reads_power = true},
                  read_anycost},
      PlannerKind{"rank_prefix",
                  "Cho et al., EMNLP 2024, arXiv:2401.06432",
                  "A client holds and trains the first ranks of every adapter, up to the rank of its device.",
                  {.local_model = LocalModel::kPrefix, .numbers_clients = true},
                  read_rank_prefix},
      PlannerKind{"rank_prefix_b",
                  "Sun et al., ICLR 2024, arXiv:2403.12313",
                  "As rank_prefix, but only the factors B are trained and sent. The factors A keep their "
                  "initial values.",
                  {.local_model = LocalModel::kPrefix, .one_factor = true, .numbers_clients = true},
                  read_rank_prefix_b},
      PlannerKind{"block",
                  "Wang, Cao, Chen, TMLR 2026, arXiv:2511.19959",
                  "All clients of a round run the whole model and train one block of its layers. The next "
                  "round trains another block.",
                  {.local_model = LocalModel::kBlock},
                  read_block},
      PlannerKind{
          "split",
          "Shan et al. 2026, arXiv:2604.26388",
          "A client trains the adapters of the model's first blocks, up to its cut. The coordinator runs the "
          "other blocks and trains theirs.",
          {.local_model = LocalModel::kSplit, .numbers_clients = true},
          read_split},
  };
  return kinds;
}

}  // namespace

std::span<const PlannerKind> planner_kinds() { return planner_table(); }

void register_planner(const PlannerKind& kind) {
  config::register_kind(planner_table(), kind, "planner", "a planner");
}

}  // namespace fedge::aggregation
