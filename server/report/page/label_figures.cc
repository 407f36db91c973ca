#include "server/report/page/label_figures.h"

#include <cmath>

namespace fedge::server {

LabelFigures label_figures(std::span<const std::uint64_t> counts, std::span<const double> accuracies,
                           std::span<const std::uint64_t> tests) {
  LabelFigures figures;
  if (counts.empty()) return figures;
  const auto labels = static_cast<double>(counts.size());
  double sum = 0;
  double squares = 0;
  double right = 0;
  double tested = 0;
  figures.covered = 0;
  for (std::size_t l = 0; l < counts.size(); ++l) {
    const auto k = static_cast<double>(counts[l]);
    sum += k;
    squares += k * k;
    if (counts[l] == 0) continue;
    figures.covered += 1;
    if (accuracies.empty() || tests[l] == 0) continue;
    right += accuracies[l] * static_cast<double>(tests[l]);
    tested += static_cast<double>(tests[l]);
  }
  figures.variance = std::fmax(0.0, squares / labels - (sum / labels) * (sum / labels));
  if (tested > 0) figures.accuracy = right / tested;
  if (sum == 0) return figures;
  figures.divergence = 0;
  for (const std::uint64_t count : counts) {
    if (count == 0) continue;
    const double p = static_cast<double>(count) / sum;
    figures.divergence += p * std::log(p * labels);
  }
  return figures;
}

}  // namespace fedge::server
