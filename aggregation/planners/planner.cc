#include "aggregation/planners/planner.h"

#include <array>
#include <utility>

#include "aggregation/planners/fedplt.h"
#include "aggregation/planners/layers.h"
#include "aggregation/planners/random_mask.h"
#include "aggregation/planners/rank_prefix.h"
#include "aggregation/planners/width.h"

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

PlannerFactory read_full(config::Reader&) { return FullPlanner::make; }

constexpr std::array kPlanners = {
    PlannerKind{"full", "McMahan et al., AISTATS 2017, arXiv:1602.05629",
                "Every client trains the whole model.", LocalModel::kWhole, read_full},
    PlannerKind{"fedplt", "Dabaja and El-Azouzi 2026, arXiv:2605.02337",
                "Every client keeps the whole model and trains the same equal groups of rows of each layer "
                "all along; all groups have equally many clients.",
                LocalModel::kWhole, read_fedplt},
    PlannerKind{
        "random_mask", "the baseline of fedplt without its assignment",
        "As much of each layer as with fedplt, but random rows, drawn anew for every round and client.",
        LocalModel::kWhole, read_random_mask},
    PlannerKind{"heterofl", "Diao et al., ICLR 2021, arXiv:2010.01264",
                "A client trains the network made of the first units of each hidden layer.",
                LocalModel::kSlice, read_heterofl},
    PlannerKind{"fjord", "Horvath et al., NeurIPS 2021, arXiv:2102.13451",
                "As heterofl, and every local step takes a random nested width up to the client's own.",
                LocalModel::kNested, read_fjord},
    PlannerKind{"fedrolex", "Alam et al., NeurIPS 2022, arXiv:2212.01548",
                "A client trains a window of units of each hidden layer that moves on by one in every round.",
                LocalModel::kSlice, read_fedrolex},
    PlannerKind{"rank_prefix", "Cho et al., EMNLP 2024, arXiv:2401.06432",
                "A client holds and trains the first ranks of every adapter, as many as its device takes.",
                LocalModel::kPrefix, read_rank_prefix},
    PlannerKind{"rank_prefix_b", "Sun et al., ICLR 2024, arXiv:2403.12313",
                "As rank_prefix, but only the factors B are trained and sent; the A stay as they began.",
                LocalModel::kPrefix, read_rank_prefix_b},
};

}  // namespace

std::span<const PlannerKind> planner_kinds() { return kPlanners; }

}  // namespace fedge::aggregation
