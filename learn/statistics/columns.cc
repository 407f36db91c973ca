#include "learn/statistics/columns.h"

#include <cmath>

#include "core/check.h"

namespace fedge::learn {

std::vector<float> numbers_of(const Normalisation& by) {
  std::vector<float> numbers = by.mean;
  numbers.insert(numbers.end(), by.deviation.begin(), by.deviation.end());
  return numbers;
}

Normalisation normalisation_of(std::span<const float> numbers) {
  const auto middle = numbers.begin() + static_cast<std::ptrdiff_t>(numbers.size() / 2);
  return {{numbers.begin(), middle}, {middle, numbers.end()}};
}

void normalise(const FeatureColumns& columns, const Normalisation& by, std::span<float> features) {
  FEDGE_CHECK(by.empty() || by.mean.size() == columns.size(), "a mean of each column");
  for (std::size_t row = 0; row < features.size(); row += columns.period)
    for (std::size_t c = 0; c < columns.features(); ++c) {
      float& value = features[row + columns.at[c]];
      if (!by.empty()) value = (value - by.mean[c]) / by.deviation[c];
      if (std::isnan(value)) value = 0;
    }
}

void normalise_targets(const FeatureColumns& columns, const Normalisation& by, std::span<float> values) {
  if (columns.targets.empty() || by.empty()) return;
  FEDGE_CHECK(by.mean.size() == columns.size(), "a mean of each column");
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::size_t c = columns.features() + i % columns.targets.size();
    values[i] = (values[i] - by.mean[c]) / by.deviation[c];
  }
}

}  // namespace fedge::learn
