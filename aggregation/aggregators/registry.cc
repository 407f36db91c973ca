#include "aggregation/aggregators/registry.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "aggregation/aggregators/mean.h"
#include "core/check.h"

namespace fedge::aggregation {

namespace {

std::vector<AggregatorKind>& table() {
  constexpr AggregatorTraits kSum = {.linear = true, .partial_updates = true};
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

}  // namespace fedge::aggregation
