// Parts and sums of data sets, as new data sets.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/result.h"
#include "learn/data/dataset.h"

namespace fedge::learn {

// Only these samples, in this order (a text's: ascending).
Dataset select_samples(const Dataset& data, std::span<const std::uint32_t> samples);

// The samples of all parts, in order. The parts have one shape and the same classes; inputs are bytes if they
// are in every part. A text's groups are counted on from part to part: kInvalid if there are too many of
// them, or too many tokens.
Result<Dataset> join_samples(std::vector<Dataset> parts);

}  // namespace fedge::learn
