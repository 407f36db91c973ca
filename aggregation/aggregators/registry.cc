#include "aggregation/aggregators/registry.h"

#include <vector>

#include "aggregation/aggregators/adapters/rules.h"
#include "aggregation/aggregators/mean.h"
#include "aggregation/aggregators/robust/rules.h"
#include "core/config/own_part.h"

namespace fedge::aggregation {

namespace {

std::vector<AggregatorKind>& table() {
  constexpr AggregatorTraits kSum = {.linear = true, .takes_sums = true, .partial_updates = true};
  constexpr AggregatorTraits kUnweightedSum = {
      .linear = true, .takes_sums = true, .uniform_weights = true, .partial_updates = true};
  constexpr AggregatorTraits kFactors = {
      .keeps_individuals = true, .partial_updates = true, .adapters = true};
  constexpr AggregatorTraits kNewFactors = {
      .keeps_individuals = true, .partial_updates = true, .adapters = true, .changes_basis = true};
  constexpr AggregatorTraits kNewWeights = {.keeps_individuals = true,
                                            .partial_updates = true,
                                            .adapters = true,
                                            .changes_basis = true,
                                            .changes_base = true};
  constexpr AggregatorTraits kRows = {.keeps_individuals = true};
  static std::vector<AggregatorKind> kinds = {
      AggregatorKind{"mean", "McMahan et al. 2017",
                     "mean of each parameter over the clients that trained it, weighted by samples", kSum,
                     read_mean},
      AggregatorKind{"uniform_mean", "Karimireddy et al. 2020; Nguyen et al. 2022",
                     "unweighted mean of each parameter over the clients that trained it", kUnweightedSum,
                     read_uniform_mean},
      AggregatorKind{
          "fednova",
          "Wang et al. 2020",
          "mean, weighted by samples, of updates that are normalised by their number of local steps",
          {.linear = true, .counts_steps = true},
          read_fednova},
      AggregatorKind{"qfedavg",
                     "Li et al. 2020",
                     "mean in which clients with a larger loss count more, with a step size from the losses",
                     {.keeps_individuals = true, .reads_losses = true},
                     read_qfedavg},
      AggregatorKind{"median", "Yin et al. 2018", "median of each parameter", kRows, read_median},
      AggregatorKind{"trimmed_mean", "Yin et al. 2018",
                     "mean of each parameter without its lowest and highest values", kRows,
                     read_trimmed_mean},
      AggregatorKind{"krum", "Blanchard et al. 2017",
                     "the update with the smallest distance to its nearest neighbours", kRows, read_krum},
      AggregatorKind{"multi_krum", "Blanchard et al. 2017",
                     "mean of the updates with the smallest distances to their nearest neighbours", kRows,
                     read_multi_krum},
      AggregatorKind{"bulyan", "El Mhamdi et al. 2018",
                     "repeated Krum selection, then the mean of the values near the median of each parameter",
                     kRows, read_bulyan},
      AggregatorKind{"geometric_median", "Pillutla et al. 2022",
                     "RFA, the point with the smallest sum of distances to the updates, weighted by samples",
                     kRows, read_geometric_median},
      AggregatorKind{"centered_clip", "Karimireddy et al. 2021",
                     "the last aggregate plus the mean of the updates' clipped differences from it", kRows,
                     read_centered_clip},
      AggregatorKind{"clipped_mean", "Sun et al. 2019",
                     "mean, weighted by samples, of updates whose norm is clipped", kRows, read_clipped_mean},
      AggregatorKind{
          "zero_pad", "Cho et al. 2024",
          "mean of the adapters' factors, weighted by samples; ranks that a client lacks count as zeros",
          kFactors, read_zero_pad},
      AggregatorKind{"hetlora", "Cho et al. 2024",
                     "as zero_pad, but clients are weighted by the norm of the product of their factors",
                     kFactors, read_hetlora},
      AggregatorKind{"flexlora", "Bai et al. 2024",
                     "mean of the products of the adapters' factors, divided into factors again by singular "
                     "value decomposition",
                     kNewFactors, read_flexlora},
      AggregatorKind{"flora", "Wang et al. 2024",
                     "mean of the products of the adapters' factors, added to the frozen weights; the "
                     "adapters are initialised again",
                     kNewWeights, read_flora},
  };
  return kinds;
}

}  // namespace

std::span<const AggregatorKind> aggregator_kinds() { return table(); }

void register_aggregator(const AggregatorKind& kind) {
  config::register_kind(table(), kind, "aggregator", "an aggregator");
}

Result<void> Aggregator::add_sum(const ExactSum&) {
  return Error{ErrorCode::kUnsupported, "with takes_sums, add_sum() must be implemented"};
}

}  // namespace fedge::aggregation
