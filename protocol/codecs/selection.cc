#include "protocol/codecs/selection.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "core/check.h"

namespace fedge::protocol {
namespace {

std::uint32_t magnitude_of(float value) { return std::bit_cast<std::uint32_t>(value) & 0x7fffffff; }

bool is_set(const Selection& kept, std::size_t i) { return (kept[i / 64] >> (i % 64) & 1) != 0; }
void set(Selection& kept, std::size_t i) { kept[i / 64] |= std::uint64_t{1} << (i % 64); }

// The bin with the k-th entry, counted from the last bin down; `k` becomes the entry's rank within the bin.
std::uint32_t bin_from_above(const std::vector<std::uint64_t>& counts, std::uint64_t& k) {
  std::uint32_t bin = static_cast<std::uint32_t>(counts.size()) - 1;
  for (; k > counts[bin]; --bin) k -= counts[bin];
  return bin;
}

}  // namespace

std::size_t kept_values(double fraction, std::size_t d) {
  FEDGE_CHECK(fraction > 0 && fraction <= 1, "a fraction of the values");
  const auto nearest = static_cast<std::size_t>(std::llround(fraction * static_cast<double>(d)));
  return std::clamp<std::size_t>(nearest, 1, d);
}

// Bit patterns of magnitudes are ordered like the magnitudes. So a histogram of the upper 16 bits and one
// of the lower 16 find the k-th largest.
Selection select_largest(std::span<const float> values, std::size_t k) {
  FEDGE_CHECK(k >= 1 && k <= values.size(), "1 to all values");
  std::vector<std::uint64_t> counts(1 << 16);
  std::uint64_t rank = k;
  for (const float value : values) ++counts[magnitude_of(value) >> 16];
  const std::uint32_t upper = bin_from_above(counts, rank);
  std::fill(counts.begin(), counts.end(), 0);
  for (const float value : values)
    if (magnitude_of(value) >> 16 == upper) ++counts[magnitude_of(value) & 0xffff];
  const std::uint32_t threshold = upper << 16 | bin_from_above(counts, rank);
  // `rank` values equal to the threshold are among the k.
  Selection kept((values.size() + 63) / 64);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::uint32_t magnitude = magnitude_of(values[i]);
    if (magnitude < threshold || (magnitude == threshold && rank == 0)) continue;
    if (magnitude == threshold) --rank;
    set(kept, i);
  }
  return kept;
}

// Floyd's algorithm (Bentley and Floyd, "Programming pearls: a sample of brilliance", CACM 1987).
Selection select_random(std::size_t count, std::size_t k, Rng& rng) {
  FEDGE_CHECK(k >= 1 && k <= count, "1 to all positions");
  Selection kept((count + 63) / 64);
  for (std::size_t last = count - k; last < count; ++last) {
    const std::size_t drawn = rng.below(last + 1);
    set(kept, is_set(kept, drawn) ? last : drawn);
  }
  return kept;
}

}  // namespace fedge::protocol
