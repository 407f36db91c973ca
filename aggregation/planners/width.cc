#include "aggregation/planners/width.h"

#include <utility>

#include "aggregation/planners/slices.h"
#include "core/check.h"

namespace fedge::aggregation {
namespace {

PlannerPart width_part(const WidthOptions& options) {
  return {.make = [options](const PlannerContext& context) { return WidthPlanner::make(options, context); },
          .widths = options.levels.shares};
}

PlannerPart read_width(config::Reader& section, WidthOptions options) {
  options.levels = read_levels(section);
  options.match_parameters =
      section.choice(
          "match", {"width", "parameters"}, 0,
          "Quantity of which the levels are fractions.\nwidth: the units of each hidden layer, as in the "
          "papers.\nparameters: all parameters of the model; the width with the closest number of "
          "parameters is used.") == 1;
  return width_part(options);
}

}  // namespace

Result<std::unique_ptr<Planner>> WidthPlanner::make(const WidthOptions& options,
                                                    const PlannerContext& context) {
  auto planner = std::unique_ptr<WidthPlanner>(new WidthPlanner());
  FEDGE_TRY(layers, read_layers(*context.layout));
  FEDGE_TRY_VOID(check_chain(layers));
  for (const double share : options.levels.shares) {
    std::vector<std::size_t> units =
        slice_units(layers, options.match_parameters ? matched_width(layers, share) : share);
    FEDGE_TRY_VOID(check_ranges(slice_ranges_max(layers, units)));
    planner->shares_.push_back(static_cast<double>(slice_size(layers, units)) /
                               static_cast<double>(context.layout->size()));
    planner->units_.push_back(std::move(units));
  }
  planner->population_ = Population(options.levels, context.clients, context.rng);
  planner->layers_ = std::move(layers);
  planner->rolling_ = options.rolling;
  return std::unique_ptr<Planner>(std::move(planner));
}

Coverage WidthPlanner::plan(const PlanRequest& request) {
  const std::vector<std::size_t>& units = units_[population_.level(request.client)];
  std::vector<Window> kept;
  for (std::size_t l = 0; l < layers_.size(); ++l) {
    const std::size_t of = layers_[l].units;
    // In the first round the window begins at unit 0, as with heterofl.
    const bool moves = rolling_ && l + 1 < layers_.size();
    kept.push_back({moves ? (request.round.value() + of - 1) % of : 0, units[l], of});
  }
  return slice_coverage(layers_, kept);
}

PlannerPart read_heterofl(config::Reader& section) { return read_width(section, {}); }

PlannerPart read_fjord(config::Reader& section) {
  // The nested widths that a step may draw are these shares, which always refer to the width.
  return width_part({.levels = read_levels(section)});
}

PlannerPart read_fedrolex(config::Reader& section) { return read_width(section, {.rolling = true}); }

}  // namespace fedge::aggregation
