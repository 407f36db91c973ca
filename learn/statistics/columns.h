// The numeric columns of a data set whose values are still as its files have them, and the numbers by which
// they are normalised when they are read.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace fedge::learn {

// Which features are numbers: those at position f with f % period in `at`. A table has its columns as period,
// an image its channels.
struct FeatureColumns {
  std::size_t period = 1;
  std::vector<std::size_t> at{};       // ascending, below period
  std::vector<std::string> names{};    // of each
  std::vector<std::string> targets{};  // the values that a model predicts, which follow the features

  bool empty() const { return size() == 0; }
  std::size_t features() const { return at.size(); }
  std::size_t size() const { return at.size() + targets.size(); }
  const std::string& name(std::size_t c) const { return c < at.size() ? names[c] : targets[c - at.size()]; }
};

// One number for each column. Empty: the values stay as they are.
struct Normalisation {
  std::vector<float> mean{};
  std::vector<float> deviation{};  // above 0

  bool empty() const { return mean.empty(); }
  bool operator==(const Normalisation&) const = default;
};

// As numbers for a message: the means, then the deviations.
std::vector<float> numbers_of(const Normalisation& by);
Normalisation normalisation_of(std::span<const float> numbers);

// Replaces the numbers x among these samples' features by (x - mean) / deviation, and a missing one, which is
// NaN, by 0. `features` is a whole number of periods.
void normalise(const FeatureColumns& columns, const Normalisation& by, std::span<float> features);
// The same for predicted values, of one sample after the other; nothing if they are no columns.
void normalise_targets(const FeatureColumns& columns, const Normalisation& by, std::span<float> values);

}  // namespace fedge::learn
