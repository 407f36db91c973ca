// clipped_mean: the mean, weighted by samples, of updates clipped to a norm: a fixed number or the median of
// the round's norms. kept_updates.h does the clipping.
#include <numeric>

#include "aggregation/aggregators/robust/combination.h"
#include "aggregation/aggregators/robust/row_rule.h"
#include "aggregation/aggregators/robust/rules.h"

namespace fedge::aggregation {
namespace {

class WeightedMean final : public RowRule {
 public:
  Result<void> prepare(KeptUpdates& rows, Parallel&) override {
    mean_.coefficients = rows.weights();
    const double total = std::accumulate(mean_.coefficients.begin(), mean_.coefficients.end(), 0.0);
    for (double& coefficient : mean_.coefficients) coefficient /= total;
    return {};
  }

  Result<void> read(KeptUpdates& rows, std::size_t first, std::span<double> out,
                    Parallel& parallel) override {
    return combine(rows, mean_, first, out, parallel);
  }

 private:
  Combination mean_;
};

}  // namespace

AggregatorPart read_clipped_mean(config::Reader& section) {
  const RowOptions options = read_row_options(section, true);
  if (options.clip_norm == 0 && !options.clip_to_median)
    section.fail("clip_to_median",
                 "is false and clip_norm is 0, so clipped_mean would not clip; set one of the two keys");
  return on_rows({.name = "clipped_mean", .options = options},
                 [](const AggregatorContext&) { return std::make_unique<WeightedMean>(); });
}

}  // namespace fedge::aggregation
