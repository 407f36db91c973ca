#include "aggregation/aggregators/registry.h"

#include <array>

#include "aggregation/aggregators/mean.h"

namespace fedge::aggregation {

std::span<const AggregatorKind> aggregator_kinds() {
  constexpr AggregatorTraits kSum = {.linear = true, .partial_updates = true};
  static constexpr std::array kKinds = {
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
  };
  return kKinds;
}

}  // namespace fedge::aggregation
