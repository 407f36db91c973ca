#include "aggregation/aggregators/registry.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "aggregation/aggregators/adapters/rules.h"
#include "aggregation/aggregators/mean.h"
#include "aggregation/aggregators/robust/rules.h"
#include "core/check.h"

namespace fedge::aggregation {

namespace {

std::vector<AggregatorKind>& table() {
  constexpr AggregatorTraits kSum = {.linear = true, .takes_sums = true, .partial_updates = true};
  constexpr AggregatorTraits kFactors = {
      .keeps_individuals = true, .partial_updates = true, .adapters = true};
  constexpr AggregatorTraits kRows = {.keeps_individuals = true};
  static std::vector<AggregatorKind> kinds = {
      AggregatorKind{"mean", "McMahan et al. 2017", "mean over those who cover a parameter, by samples", kSum,
                     read_mean},
      AggregatorKind{"uniform_mean", "Karimireddy et al. 2020; Nguyen et al. 2022",
                     "mean over those who cover a parameter, each counting the same", kSum,
                     read_uniform_mean},
      AggregatorKind{"fednova",
                     "Wang et al. 2020",
                     "mean by samples of updates divided by their number of local steps",
                     {.linear = true},
                     read_fednova},
      AggregatorKind{"median", "Yin et al. 2018", "median of each parameter", kRows, read_median},
      AggregatorKind{"trimmed_mean", "Yin et al. 2018",
                     "mean of each parameter without its lowest and highest values", kRows,
                     read_trimmed_mean},
      AggregatorKind{"krum", "Blanchard et al. 2017", "the update closest to its nearest others", kRows,
                     read_krum},
      AggregatorKind{"multi_krum", "Blanchard et al. 2017",
                     "mean of the updates closest to their nearest others", kRows, read_multi_krum},
      AggregatorKind{"bulyan", "El Mhamdi et al. 2018",
                     "Krum's choice of updates, then the mean of each parameter's values near the median",
                     kRows, read_bulyan},
      AggregatorKind{"geometric_median", "Pillutla et al. 2022",
                     "RFA: the point with the least sum of distances, by samples", kRows,
                     read_geometric_median},
      AggregatorKind{"centered_clip", "Karimireddy et al. 2021",
                     "the last aggregate, moved by the mean of clipped differences", kRows,
                     read_centered_clip},
      AggregatorKind{"clipped_mean", "Sun et al. 2019", "mean by samples of updates shortened to a norm",
                     kRows, read_clipped_mean},
      AggregatorKind{"zero_pad", "Cho et al. 2024",
                     "mean of adapters' factors by samples, ranks that a client lacks counting as zeros",
                     kFactors, read_zero_pad},
      AggregatorKind{"hetlora", "Cho et al. 2024",
                     "the same, each client counting by the norm of what its adapters have learned", kFactors,
                     read_hetlora},
      AggregatorKind{"flexlora", "Bai et al. 2024",
                     "mean of the products of adapters' factors, taken apart by singular values", kFactors,
                     read_flexlora},
      AggregatorKind{"flora", "Wang et al. 2024",
                     "mean of the products, added to the frozen weights; adapters begin anew", kFactors,
                     read_flora},
  };
  return kinds;
}

}  // namespace

std::span<const AggregatorKind> aggregator_kinds() { return table(); }

void register_aggregator(const AggregatorKind& kind) {
  const auto same = [&](const AggregatorKind& known) { return std::string_view(known.name) == kind.name; };
  FEDGE_CHECK(std::none_of(table().begin(), table().end(), same), "two aggregators of one name");
  table().push_back(kind);
}

Result<void> Aggregator::add_sum(const ExactSum&) { FEDGE_CHECK(false, "a rule that takes no sums"); }

}  // namespace fedge::aggregation
