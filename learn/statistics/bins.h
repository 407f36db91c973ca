// Bins: where each column's values lie, found out in a few steps of counting. The first step divides all
// finite floats into bins; each later one divides the bins that have values, in proportion to their counts.
// So the bins become narrow where the values are, whatever their scale, and a few outliers cost little. This
// is our own construction; adaptive histograms in several passes are common for distributed quantiles.
//
// Floats are divided by the order of their bits: between 2^k and 2^(k+1) there are as many floats for every
// k, and a bin that is narrower than that is divided evenly.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace fedge::learn {

// The edges of one column's bins: one more than bins, ascending, finite. A value belongs to the last bin
// whose first edge it reaches; values beyond the edges belong to the outermost bins. A bin between equal
// edges is empty.
using Edges = std::vector<float>;

// Divides all finite floats into this even number of bins; 0 is an edge.
Edges first_edges(std::size_t bins);
// Divides the bins with values, from the first to the last, into as many bins as before; in proportion to
// their counts, or evenly, which separates rare values as well as frequent ones.
enum class Divide { kByCount, kEvenly };
Edges divided(const Edges& edges, std::span<const std::int64_t> counts, Divide how = Divide::kByCount);
// The bin of a value that is not NaN.
std::size_t bin_of(std::span<const float> edges, float value);

// An estimate, and how far it may be off.
struct Estimate {
  double value = 0;
  double error = 0;
};
// The q-quantile of the counted values, as NumPy's default defines it: between the two nearest values, by
// linear interpolation. q is in [0, 1]. At least one value has been counted, and all lay between the edges.
Estimate quantile(std::span<const float> edges, std::span<const std::int64_t> counts, double q);

}  // namespace fedge::learn
