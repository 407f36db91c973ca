#include "core/energy/training_work.h"

#include <map>
#include <utility>

#include "core/check.h"

namespace fedge {

TrainingWork::TrainingWork(const ParameterLayout& layout, std::vector<double> uses) {
  // By layer; the trained weights of a layer first.
  std::map<std::pair<std::uint32_t, bool>, std::vector<Range>> weights;
  for (const TensorInfo& tensor : layout.tensors())
    if (tensor.shape.size() >= 2)
      weights[{tensor.layer, !tensor.trainable}].push_back({tensor.offset, tensor.offset + tensor.size});
  for (auto& [key, ranges] : weights) {
    const auto [index, frozen] = key;
    FEDGE_CHECK(index < uses.size(), "each layer of the model has a number of uses");
    const bool lowest = index == weights.begin()->first.first;
    const double operations = 2 + (frozen ? 0 : 2) + (lowest ? 0 : 2);
    Layer layer{.weights = std::move(ranges), .per_weight = uses[index] * operations};
    for (const Range& range : layer.weights) whole_ += layer.per_weight * static_cast<double>(range.size());
    layers_.push_back(std::move(layer));
  }
}

double TrainingWork::flops(const Coverage& part) const {
  double sum = 0;
  for (const Layer& layer : layers_) {
    const Coverage kept = part.intersect(Coverage::of(layer.weights));
    sum += layer.per_weight * static_cast<double>(kept.count());
  }
  return sum;
}

}  // namespace fedge
