// geometric_median: the point with the least weighted sum of distances to the updates, by smoothed Weiszfeld
// iterations (Pillutla, Kakade, Harchaoui, "Robust Aggregation for Federated Learning", IEEE TSP 2022,
// algorithm 2). The result is a weighted mean in which distant updates count less; its only state is the
// weights.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "aggregation/aggregators/robust/combination.h"
#include "aggregation/aggregators/robust/row_rule.h"
#include "aggregation/aggregators/robust/rules.h"

namespace fedge::aggregation {
namespace {

struct Weiszfeld {
  std::size_t iterations;
  double tolerance;
  double smoothing;  // nu
};

void normalise(std::vector<double>& weights) {
  const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
  for (double& weight : weights) weight /= total;
}

class GeometricMedian final : public RowRule {
 public:
  explicit GeometricMedian(const Weiszfeld& options) : options_(options) {}

  Result<void> prepare(KeptUpdates& rows, Parallel& parallel) override {
    std::vector<double> weights = rows.weights();
    normalise(weights);
    point_.coefficients = weights;
    double last = HUGE_VAL;
    for (std::size_t iteration = 0; iteration < options_.iterations; ++iteration) {
      FEDGE_TRY(distances, distances_to(rows, point_, parallel));
      const double objective = std::inner_product(weights.begin(), weights.end(), distances.begin(), 0.0);
      if (options_.tolerance > 0 && last - objective <= options_.tolerance * objective) break;
      last = objective;
      for (std::size_t row = 0; row < weights.size(); ++row)
        point_.coefficients[row] = weights[row] / std::max(options_.smoothing, distances[row]);
      normalise(point_.coefficients);
    }
    return {};
  }

  Result<void> read(KeptUpdates& rows, std::size_t first, std::span<double> out,
                    Parallel& parallel) override {
    return combine(rows, point_, first, out, parallel);
  }

 private:
  Weiszfeld options_;
  Combination point_;
};

}  // namespace

AggregatorPart read_geometric_median(config::Reader& section) {
  Weiszfeld options{};
  options.iterations = static_cast<std::size_t>(section.integer(
      "iterations", 3, {1, 10'000}, "Maximum number of iterations. Each iteration reads every update once."));
  options.tolerance = section.number("tolerance", 1e-6, {0.0, 1.0},
                                     "The iterations end early when one lowers the sum of distances by less "
                                     "than this fraction. 0: never early.");
  options.smoothing = section.number("smoothing", 1e-6, {1e-30, 1e6},
                                     "Minimum distance. A closer update counts as if it had this distance.");
  return on_rows({.name = "geometric_median", .options = read_row_options(section)},
                 [=](const AggregatorContext&) { return std::make_unique<GeometricMedian>(options); });
}

}  // namespace fedge::aggregation
