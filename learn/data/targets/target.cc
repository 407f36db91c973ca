#include "learn/data/targets/target.h"

namespace fedge::learn {

const std::vector<std::string>& task_names() {
  static const std::vector<std::string> names = {"classification", "multi-label", "segmentation",
                                                 "regression"};
  return names;
}

void Targets::append(const Targets& from, std::size_t i) {
  const auto copy = [i](const auto& all, std::size_t size, auto& to) {
    const auto first = all.begin() + static_cast<std::ptrdiff_t>(i * size);
    to.insert(to.end(), first, first + static_cast<std::ptrdiff_t>(size));
  };
  if (!from.points.empty()) copy(from.points, shape.points, points);
  if (!from.values.empty()) copy(from.values, shape.outputs, values);
}

}  // namespace fedge::learn
