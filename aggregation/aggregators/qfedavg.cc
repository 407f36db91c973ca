// q-FedAvg (Li, Sanjabi, Beirami, Smith, "Fair resource allocation in federated learning", ICLR 2020,
// algorithm 2). With delta_k the update of client k, F_k the loss of the round's model on its samples and L
// the Lipschitz constant:
//   w <- w + sum_k F_k^q delta_k / sum_k (F_k^q + q L F_k^(q-1) ||delta_k||^2)
// which is the paper's step, with numerator and denominator divided by L. Both are also divided by (max F)^q,
// so that no power overflows.
#include <algorithm>
#include <cmath>

#include "aggregation/aggregators/mean.h"
#include "aggregation/aggregators/robust/combination.h"
#include "aggregation/aggregators/robust/row_rule.h"

namespace fedge::aggregation {
namespace {

class QFedAvg final : public RowRule {
 public:
  QFedAvg(double q, double lipschitz) : q_(q), lipschitz_(lipschitz) {}

  Result<void> prepare(KeptUpdates& rows, Parallel&) override {
    // Added to every loss, as in the authors' code: a loss of 0 has no power below 0.
    constexpr double kLeastLoss = 1e-10;
    std::vector<double> losses = rows.losses();
    for (double& loss : losses) loss = std::max(loss, 0.0) + kLeastLoss;
    const double largest = *std::ranges::max_element(losses);
    const std::vector<double> norms = rows.norms();
    double total = 0;
    step_.coefficients.clear();
    for (std::size_t k = 0; k < losses.size(); ++k) {
      const double weight = std::pow(losses[k] / largest, q_);
      total += weight + q_ * lipschitz_ * weight / losses[k] * norms[k] * norms[k];
      step_.coefficients.push_back(weight);
    }
    for (double& coefficient : step_.coefficients) coefficient /= total;
    return {};
  }

  Result<void> read(KeptUpdates& rows, std::size_t first, std::span<double> out,
                    Parallel& parallel) override {
    return combine(rows, step_, first, out, parallel);
  }

 private:
  double q_;
  double lipschitz_;
  Combination step_;
};

}  // namespace

AggregatorPart read_qfedavg(config::Reader& section) {
  const double q = section.number(
      "q", 0.1, {0, 100},
      "Fairness. Larger values give clients with a larger loss more weight. 0: all weights are equal.");
  const double lipschitz = section.number(
      "lipschitz", 0, {0, 1e9},
      "Estimate of the Lipschitz constant of the loss's gradient. Larger values make steps smaller. 0: 1 / "
      "training.optimizer.learning_rate.");
  return on_rows({.name = "qfedavg", .options = {.memory_bytes = read_memory_bytes(section)}},
                 [=](const AggregatorContext& context) {
                   const double rate = context.local_rate;
                   return std::make_unique<QFedAvg>(q,
                                                    lipschitz > 0 ? lipschitz : (rate > 0 ? 1 / rate : 1.0));
                 });
}

}  // namespace fedge::aggregation
