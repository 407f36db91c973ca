#include "aggregation/weight_map.h"

#include <algorithm>
#include <utility>

namespace fedge::aggregation {

void WeightMap::add(const Coverage& coverage, SampleCount weight) {
  std::vector<Step> merged;
  merged.reserve(steps_.size() + 2 * coverage.ranges().size());
  const auto append = [&](std::size_t begin, std::uint64_t value) {
    if (!merged.empty() && merged.back().weight == value) return;
    merged.push_back({begin, value});
  };
  // Walks the borders of both step functions in order; `held` is the old weight at the current border.
  std::size_t s = 0;
  std::uint64_t held = 0;
  const auto copy_until = [&](std::size_t border, std::uint64_t extra) {
    for (; s < steps_.size() && steps_[s].begin < border; ++s) {
      held = steps_[s].weight;
      append(steps_[s].begin, held + extra);
    }
  };
  const auto enter = [&](std::size_t border, std::uint64_t extra) {
    if (s < steps_.size() && steps_[s].begin == border) held = steps_[s++].weight;
    append(border, held + extra);
  };
  for (const Range& range : coverage.ranges()) {
    copy_until(range.begin, 0);
    enter(range.begin, weight.value());
    copy_until(range.end, weight.value());
    enter(range.end, 0);
  }
  for (; s < steps_.size(); ++s) append(steps_[s].begin, steps_[s].weight);
  steps_ = std::move(merged);
}

std::size_t WeightMap::step_of(std::size_t parameter) const {
  const auto after = std::upper_bound(steps_.begin(), steps_.end(), parameter,
                                      [](std::size_t p, const Step& step) { return p < step.begin; });
  return static_cast<std::size_t>(after - steps_.begin()) - 1;  // the first step begins at 0
}

SampleCount WeightMap::at(std::size_t parameter) const {
  return SampleCount(steps_[step_of(parameter)].weight);
}

Coverage WeightMap::covered() const {
  std::vector<Range> ranges;
  for (std::size_t s = 0; s + 1 < steps_.size(); ++s)
    if (steps_[s].weight > 0) ranges.push_back({steps_[s].begin, steps_[s + 1].begin});
  return Coverage::of(std::move(ranges));
}

}  // namespace fedge::aggregation
