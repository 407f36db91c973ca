#include "aggregation/planners/anycost.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "aggregation/planners/slices.h"
#include "core/check.h"

namespace fedge::aggregation {
namespace {

// Enough for neighbouring doubles near 1.
constexpr int kHalvings = 40;
constexpr std::size_t kMaxKept = 16;

AnycostOptions read_options(config::Reader& section) {
  AnycostOptions options;
  options.time_limit = section.number("time_limit", options.time_limit, {0.0, 1e9},
                                      "Maximum time of a task in seconds, from the first byte of the model "
                                      "to the last byte of the update. 0: no limit.");
  options.energy_limit =
      section.number("energy_limit", options.energy_limit, {0.0, 1e9},
                     "Maximum energy of a task in joules, as the planner predicts it. 0: no limit.");
  options.law = section.choice("power", {"analytical", "approximate"}, 0,
                               "How the planner predicts the power of a processor.\nanalytical: C V^2 f, "
                               "from the voltage at each frequency.\napproximate: kappa f^3, which assumes "
                               "that the voltage is proportional to the frequency.") == 0
                    ? PowerLaw::kAnalytical
                    : PowerLaw::kApproximate;
  options.anchor = static_cast<PowerAnchor>(
      section.choice("anchor", {"f_min", "f_max", "mean"}, 0,
                     "Measured power from which C or kappa is computed.\nf_min: at the lowest "
                     "frequency.\nf_max: at the highest frequency.\nmean: the mean of both results."));
  options.min_width = section.number("min_width", options.min_width, {0.001, 1.0},
                                     "Smallest fraction of the units of each hidden layer.");
  options.kept = section.numbers(
      "kept", options.kept, {1e-6, 1.0},
      "Fractions of an update's values among which the planner chooses, with "
      "compression.kind = \"top_k\" or \"rand_k\". Empty: clients compress as [compression] says.");
  if (options.kept.size() > kMaxKept)
    section.fail("kept", "lists " + std::to_string(options.kept.size()) + " fractions, at most " +
                             std::to_string(kMaxKept) + " are allowed");
  options.width_exponent = section.number("width_exponent", options.width_exponent, {0.0, 10.0},
                                          "Exponent p of the width in the gain that the planner maximises.");
  options.kept_exponent =
      section.number("kept_exponent", options.kept_exponent, {0.0, 10.0},
                     "Exponent q of the fraction of the values that is sent, in the same gain.");
  options.sort_units = section.boolean(
      "sort_units", options.sort_units,
      "Whether the coordinator sorts the units of each hidden layer by the norm of their weights in every "
      "round, so that a narrow network has the most important units. The function of the model stays the "
      "same.");
  return options;
}

}  // namespace

Result<std::unique_ptr<Planner>> AnycostPlanner::make(const AnycostOptions& options,
                                                      const PlannerContext& context) {
  FEDGE_TRY(layers, read_layers(*context.layout));
  FEDGE_TRY_VOID(check_chain(layers));
  std::vector<std::size_t> widest;
  for (const PlanLayer& layer : layers) widest.push_back(layer.units);
  FEDGE_TRY_VOID(check_ranges(slice_ranges_max(layers, widest)));
  FEDGE_CHECK(context.work.layers() == layers.size() && context.trained && context.update_bytes,
              "a context with the costs of a task");
  return std::unique_ptr<Planner>(new AnycostPlanner(options, context, std::move(layers)));
}

AnycostPlanner::AnycostPlanner(const AnycostOptions& options, const PlannerContext& context,
                               std::vector<PlanLayer> layers)
    : options_(options),
      kept_(options.kept.empty() ? std::vector<double>{0} : options.kept),
      context_(context),
      layers_(std::move(layers)),
      whole_share_(static_cast<double>(context.layout->trainable().count()) /
                   static_cast<double>(context.layout->size())) {}

void AnycostPlanner::describe(ClientId client, const DevicePower& power) {
  const auto known = devices_.find(client);
  if (known != devices_.end() && known->second.power == power) return;
  devices_.insert_or_assign(client, Device{power, PowerModel(power, options_.law, options_.anchor)});
}

const AnycostPlanner::Device& AnycostPlanner::device_of(ClientId client) const {
  const auto device = devices_.find(client);
  FEDGE_CHECK(device != devices_.end(), "a client that has described the energy of its device");
  return device->second;
}

AnycostPlanner::Cost AnycostPlanner::cost(const Device& device, SampleCount samples, double width,
                                          double kept, std::size_t step) const {
  const std::vector<std::size_t> units = slice_units(layers_, width);
  double flops = 0;
  for (std::size_t l = 0; l < layers_.size(); ++l)
    flops += context_.work.layer_flops(l, static_cast<double>(slice_weights(layers_, units, l)));
  const DevicePower& power = device.power;
  const double cycles = flops * context_.trained(samples) * power.cycles_per_flop;
  const double computes = cycles / power.hertz[step];
  const double receives = static_cast<double>(context_.layout->size_bytes()) / power.receive_bytes_per_second;
  const double sends = context_.update_bytes(slice_size(layers_, units), kept) / power.send_bytes_per_second;
  return {.seconds = receives + computes + sends,
          .joules = device.model.joules(cycles, step) + power.awake_watts * (receives + computes + sends) +
                    power.receive_watts * receives + power.send_watts * sends};
}

bool AnycostPlanner::within(const Cost& cost) const {
  return (options_.time_limit == 0 || cost.seconds <= options_.time_limit) &&
         (options_.energy_limit == 0 || cost.joules <= options_.energy_limit);
}

// By how much a cost exceeds the limits: the larger of its ratios to them.
double AnycostPlanner::excess(const Cost& cost) const {
  return std::max(options_.time_limit > 0 ? cost.seconds / options_.time_limit : 0,
                  options_.energy_limit > 0 ? cost.joules / options_.energy_limit : 0);
}

AnycostPlanner::Choice AnycostPlanner::widest(const Device& device, SampleCount samples, double kept,
                                              std::size_t step) const {
  const auto at = [&](double width) {
    const Cost predicted = cost(device, samples, width, kept, step);
    return Choice{width, kept, step, predicted, within(predicted)};
  };
  if (const Choice whole = at(1); whole.within) return whole;
  Choice best = at(options_.min_width);
  if (!best.within) return best;
  double below = options_.min_width;
  double above = 1;
  for (int i = 0; i < kHalvings; ++i) {
    const double middle = below + (above - below) / 2;
    const Choice choice = at(middle);
    (choice.within ? below : above) = middle;
    if (choice.within) best = choice;
  }
  return best;
}

double AnycostPlanner::gain(const Choice& choice) const {
  const double kept = choice.kept > 0 ? choice.kept : 1;
  return std::pow(choice.width, options_.width_exponent) * std::pow(kept, options_.kept_exponent);
}

AnycostPlanner::Choice AnycostPlanner::choose(ClientId client, SampleCount samples) const {
  const Device& device = device_of(client);
  const auto better = [&](const Choice& one, const Choice& than) {
    if (one.within != than.within) return one.within;
    const double gained = one.within ? gain(one) : -excess(one.cost);
    const double before = one.within ? gain(than) : -excess(than.cost);
    return gained != before ? gained > before : one.cost.joules < than.cost.joules;
  };
  Choice best;
  bool first = true;
  for (std::size_t step = 0; step < device.model.steps(); ++step)
    for (const double kept : kept_) {
      const Choice choice = widest(device, samples, kept, step);
      if (first || better(choice, best)) best = choice;
      first = false;
    }
  return best;
}

Coverage AnycostPlanner::plan(const PlanRequest& request) {
  const std::vector<std::size_t> units = slice_units(layers_, choose(request.client, request.samples).width);
  std::vector<Window> kept;
  for (std::size_t l = 0; l < layers_.size(); ++l) kept.push_back({0, units[l], layers_[l].units});
  return slice_coverage(layers_, kept);
}

Effort AnycostPlanner::effort(const PlanRequest& request) {
  const Choice choice = choose(request.client, request.samples);
  return {.hertz = device_of(request.client).power.hertz[choice.step], .kept = choice.kept};
}

PlannerPart read_anycost(config::Reader& section) {
  const AnycostOptions options = read_options(section);
  return {.make = [options](const PlannerContext& context) { return AnycostPlanner::make(options, context); },
          .sets_kept = !options.kept.empty(),
          .sorts_units = options.sort_units};
}

}  // namespace fedge::aggregation
