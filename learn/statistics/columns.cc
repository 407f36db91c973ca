#include "learn/statistics/columns.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "core/check.h"
#include "core/crypto/sha256.h"

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

float place_of_name(std::string_view name) {
  constexpr std::string_view kPrefix = "fedge category 1: ";
  const Digest hash = sha256(std::string(kPrefix) += name);
  std::uint64_t number = 0;
  for (std::size_t i = 0; i < sizeof number; ++i) number = number << 8 | hash[i];
  // Positive floats are in the order of their bits.
  constexpr std::uint64_t kPositive = std::bit_cast<std::uint32_t>(std::numeric_limits<float>::max());
  return std::bit_cast<float>(static_cast<std::uint32_t>(1 + number % kPositive));
}

namespace {

// Turns a name's place into its slot. `first` is the number of the column's first slot in `by`.
void set_slot(const Normalisation& by, std::size_t first, std::span<float> features) {
  const float place = features[0];
  features[0] = 0;
  if (by.empty()) return;
  for (std::size_t i = 0; i < features.size(); ++i)
    if (place >= by.mean[first + i] && place < by.deviation[first + i]) {
      features[i] = 1;
      return;
    }
}

bool fits(const FeatureColumns& columns, const Normalisation& by) {
  return by.mean.size() == columns.size() + columns.all_slots();
}

}  // namespace

void normalise(const FeatureColumns& columns, const Normalisation& by, std::span<float> features) {
  FEDGE_CHECK(by.empty() || fits(columns, by), "a mean of each column");
  for (std::size_t row = 0; row < features.size(); row += columns.period) {
    std::size_t slot = columns.size();
    for (std::size_t c = 0; c < columns.features(); ++c) {
      if (const std::size_t slots = columns.slots_of(c); slots > 0) {
        set_slot(by, slot, features.subspan(row + columns.at[c], slots));
        slot += slots;
        continue;
      }
      float& value = features[row + columns.at[c]];
      if (!by.empty()) value = (value - by.mean[c]) / by.deviation[c];
      if (std::isnan(value)) value = 0;
    }
  }
}

void normalise_targets(const FeatureColumns& columns, const Normalisation& by, std::span<float> values) {
  if (columns.targets.empty() || by.empty()) return;
  FEDGE_CHECK(fits(columns, by), "a mean of each column");
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::size_t c = columns.features() + i % columns.targets.size();
    values[i] = (values[i] - by.mean[c]) / by.deviation[c];
  }
}

}  // namespace fedge::learn
