// The columns of a data set whose values are still as its files have them, and the numbers by which they are
// normalised when they are read.
#pragma once

#include <cstddef>
#include <numeric>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fedge::learn {

// Which features are columns: those at position f with f % period in `at`. A table has its columns as period,
// an image its channels.
struct FeatureColumns {
  std::size_t period = 1;
  std::vector<std::size_t> at{};       // ascending, below period
  std::vector<std::string> names{};    // of each
  std::vector<std::string> targets{};  // the values that a model predicts, which follow the features
  // 0: a number. Otherwise a name whose values the clients agree on: this many features, one for each value.
  // Until it is normalised, the first of them has the name's place (place_of_name()), and the others are 0.
  std::vector<std::size_t> slots{};  // of each feature in `at`

  bool empty() const { return size() == 0; }
  std::size_t features() const { return at.size(); }
  std::size_t size() const { return at.size() + targets.size(); }
  std::size_t slots_of(std::size_t c) const { return c < slots.size() ? slots[c] : 0; }
  std::size_t all_slots() const { return std::accumulate(slots.begin(), slots.end(), std::size_t{0}); }
  const std::string& name(std::size_t c) const { return c < at.size() ? names[c] : targets[c - at.size()]; }
};

// The place of a name among the positive floats, by its hash. Two names rarely have the same.
float place_of_name(std::string_view name);

// Two numbers for each column, then two for each slot: the slot is 1 for names at these places, from the
// first to before the second. Empty: the values stay as they are.
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
// NaN, by 0. A name sets its slot to 1 and the column's others to 0; one that is missing, or has no slot,
// sets all to 0. `features` is a whole number of periods.
void normalise(const FeatureColumns& columns, const Normalisation& by, std::span<float> features);
// The same for predicted values, of one sample after the other; nothing if they are no columns.
void normalise_targets(const FeatureColumns& columns, const Normalisation& by, std::span<float> values);

}  // namespace fedge::learn
