#include "aggregation/planners/random_mask.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "aggregation/planners/slices.h"
#include "core/check.h"

namespace fedge::aggregation {
namespace {

// Draws `count` of `of` numbers, every set equally likely; sorted.
std::vector<std::size_t> draw(std::size_t count, std::size_t of, Rng rng) {
  std::vector<std::size_t> numbers(of);
  std::iota(numbers.begin(), numbers.end(), std::size_t{0});
  for (std::size_t i = 0; i < count && count < of; ++i) std::swap(numbers[i], numbers[i + rng.below(of - i)]);
  numbers.resize(count);
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

}  // namespace

Result<std::unique_ptr<Planner>> RandomMaskPlanner::make(const RandomMaskOptions& options,
                                                         const PlannerContext& context) {
  auto planner = std::unique_ptr<RandomMaskPlanner>(new RandomMaskPlanner());
  FEDGE_TRY(layers, read_layers(*context.layout));
  FEDGE_TRY(divided, divided_layers(layers, options.split_output));
  for (const double share : options.levels.shares) {
    std::vector<std::size_t> units;
    std::size_t trained = 0;
    std::size_t ranges = 0;
    for (std::size_t l = 0; l < layers.size(); ++l) {
      const PlanLayer& layer = layers[l];
      const std::size_t count = l < divided ? rounded_units(share, layer.units) : layer.units;
      units.push_back(count);
      trained += count * layer.unit_size();
      // Most contiguous runs that this number of units can form.
      ranges += std::min(count, layer.units - count + 1) * (1 + layer.vectors.size());
    }
    FEDGE_TRY_VOID(check_ranges(ranges));
    planner->units_.push_back(std::move(units));
    planner->shares_.push_back(static_cast<double>(trained) / static_cast<double>(context.layout->size()));
  }
  planner->layers_ = std::move(layers);
  planner->population_ = Population(options.levels, context.clients, context.rng);
  return std::unique_ptr<Planner>(std::move(planner));
}

Coverage RandomMaskPlanner::plan(const PlanRequest& request) {
  const std::vector<std::size_t>& counts = units_[population_.level(request.client)];
  std::vector<Range> ranges;
  for (std::size_t l = 0; l < layers_.size(); ++l)
    for (const std::size_t unit : draw(counts[l], layers_[l].units, request.rng.fork("random mask", l)))
      append_units(layers_[l], {unit, unit + 1}, ranges);
  return Coverage::of(std::move(ranges));
}

PlannerPart read_random_mask(config::Reader& section) {
  RandomMaskOptions options;
  options.levels = read_levels(section);
  options.split_output = read_split_output(section);
  return {
      .make = [options](const PlannerContext& context) { return RandomMaskPlanner::make(options, context); },
      .splits_output = options.split_output};
}

}  // namespace fedge::aggregation
