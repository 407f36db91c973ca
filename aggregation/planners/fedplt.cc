#include "aggregation/planners/fedplt.h"

#include <numeric>
#include <string>
#include <utility>

#include "core/check.h"

namespace fedge::aggregation {
namespace {

// Upper bound on sub-layers, wider than any layer. With denominators up to 1000 no product below overflows.
constexpr std::uint32_t kMaxSubLayers = 1U << 20;

// Fractions of the levels that some client has or may declare; unused levels do not affect how layers are
// cut.
Result<std::vector<Fraction>> fractions_in_use(const Levels& levels, std::size_t clients) {
  std::vector<std::size_t> counts;
  if (!levels.declared) counts = level_counts(levels.fractions, clients);
  std::vector<Fraction> fractions(levels.shares.size());
  for (std::size_t level = 0; level < fractions.size(); ++level) {
    if (!levels.declared && counts[level] == 0) continue;
    FEDGE_TRY(fraction, exact_fraction(levels.shares[level]));
    fractions[level] = fraction;
  }
  return fractions;
}

Result<std::uint32_t> least_common_multiple(const std::vector<Fraction>& fractions) {
  std::uint32_t multiple = 1;
  for (const Fraction& fraction : fractions) {
    multiple = std::lcm(multiple, fraction.denominator);
    if (multiple > kMaxSubLayers)
      return invalid("the values of shares have no common denominator up to " +
                     std::to_string(kMaxSubLayers) + "; use values such as 0.2, 0.4 and 1");
  }
  return multiple;
}

Result<void> check_widths(const std::vector<PlanLayer>& layers, std::size_t divided, std::uint32_t pieces) {
  for (std::size_t l = 0; l < divided; ++l)
    if (layers[l].units % pieces != 0)
      return invalid("layer " + layers[l].name + " has " + std::to_string(layers[l].units) +
                     " units, which cannot be divided into " + std::to_string(pieces) +
                     " equal sub-layers (the common denominator of the shares); make the number of units a "
                     "multiple of " +
                     std::to_string(pieces));
  return {};
}

}  // namespace

Result<std::unique_ptr<Planner>> FedPltPlanner::make(const FedPltOptions& options,
                                                     const PlannerContext& context) {
  auto planner = std::unique_ptr<FedPltPlanner>(new FedPltPlanner());
  FEDGE_TRY(layers, read_layers(*context.layout));
  FEDGE_TRY(divided, divided_layers(layers, options.split_output));
  FEDGE_TRY(fractions, fractions_in_use(options.levels, context.clients));
  FEDGE_TRY(pieces, least_common_multiple(fractions));
  FEDGE_TRY_VOID(check_widths(layers, divided, pieces));
  std::size_t ranges = 0;
  for (const PlanLayer& layer : layers) ranges += 2 * (1 + layer.vectors.size());
  FEDGE_TRY_VOID(check_ranges(ranges));

  for (const Fraction& fraction : fractions) {
    const std::uint32_t active = pieces / fraction.denominator * fraction.numerator;
    std::size_t trained = 0;
    for (std::size_t l = 0; l < layers.size(); ++l)
      trained += l < divided ? layers[l].size() / pieces * active : layers[l].size();
    planner->active_.push_back(active);
    planner->shares_.push_back(static_cast<double>(trained) / static_cast<double>(context.layout->size()));
  }
  planner->population_ = Population(options.levels, context.clients, context.rng);
  planner->first_on_.resize(context.clients);
  planner->layers_ = std::move(layers);
  planner->divided_ = divided;
  planner->sub_layers_ = pieces;
  planner->rotate_ = options.rotate;
  if (!options.levels.declared)
    for (std::uint32_t client = 0; client < context.clients; ++client) planner->place(ClientId(client));
  return std::unique_ptr<Planner>(std::move(planner));
}

void FedPltPlanner::place(ClientId client) {
  next_off_ = (next_off_ + sub_layers_ - active_[population_.level(client)]) % sub_layers_;
  first_on_[client.value()] = next_off_;  // active from here, cyclically up to the first inactive one
}

void FedPltPlanner::admit(ClientId client, double capability) {
  if (population_.admit(client, capability)) place(client);
}

Coverage FedPltPlanner::plan(const PlanRequest& request) {
  const std::size_t level = population_.level(request.client);
  const std::uint64_t moved = rotate_ ? request.round.value() % sub_layers_ : 0;
  const Window on{(first_on_[request.client.value()] + moved) % sub_layers_, active_[level], sub_layers_};
  std::vector<Range> ranges;
  for (std::size_t l = 0; l < layers_.size(); ++l) {
    if (l >= divided_) {
      append_units(layers_[l], {0, layers_[l].units}, ranges);
      continue;
    }
    const std::size_t units = layers_[l].units / sub_layers_;
    for (const Range& pieces : on.ranges())
      append_units(layers_[l], {pieces.begin * units, pieces.end * units}, ranges);
  }
  return Coverage::of(std::move(ranges));
}

PlannerPart read_fedplt(config::Reader& section) {
  FedPltOptions options;
  options.levels = read_levels(section);
  options.split_output = read_split_output(section);
  options.rotate = section.boolean(
      "rotate", false,
      "Whether the part of a client moves by one sub-layer in every round, cyclically. In as many "
      "consecutive rounds as there are sub-layers, a client then trains each of them equally often. If not, "
      "a client trains the "
      "same part in the whole run, which is the paper's rule; rotation is an option of Fedge.");
  for (const double share : options.levels.shares)
    if (auto fraction = exact_fraction(share); !fraction) section.fail("shares", fraction.error().message);
  return {.make = [options](const PlannerContext& context) { return FedPltPlanner::make(options, context); },
          .splits_output = options.split_output};
}

}  // namespace fedge::aggregation
