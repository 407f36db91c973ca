#include "aggregation/planners/split.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <string>
#include <utility>

#include "core/check.h"

namespace fedge::aggregation {
namespace {

const std::vector<std::string> kCutNames = {"adaptive", "fixed", "random", "resources"};
constexpr CutKind kCutKinds[] = {CutKind::kAdaptive, CutKind::kFixed, CutKind::kRandom, CutKind::kResources};

// std::nearbyint follows the rounding mode of the thread, which a library may have changed.
double round_half_to_even(double value) {
  const double down = std::floor(value);
  const double rest = value - down;
  if (rest != 0.5) return rest < 0.5 ? down : down + 1;
  return std::fmod(down, 2) == 0 ? down : down + 1;
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

}  // namespace

SplitPlanner::SplitPlanner(SplitOptions options, SplitLayout layout, const PlannerContext& context)
    : options_(std::move(options)),
      layout_(std::move(layout)),
      parameters_(context.layout->size()),
      population_(options_.levels, context.clients, context.rng),
      cuts_(context.clients, static_cast<std::uint16_t>(options_.blocks)) {
  if (options_.kind == CutKind::kAdaptive) observed_.resize(context.clients);
  if (options_.kind == CutKind::kResources)
    std::ranges::fill(cuts_, static_cast<std::uint16_t>(layout_.blocks()));
}

Result<std::unique_ptr<Planner>> SplitPlanner::make(const SplitOptions& options,
                                                    const PlannerContext& context) {
  if (context.adapters == nullptr)
    return invalid("it cuts a model with adapters, but the model has none; set model.adapter.rank");
  FEDGE_TRY(layout, SplitLayout::of(*context.layout, *context.adapters, options.cut_ranks));
  for (const auto& [key, blocks] : {std::pair{"blocks", options.blocks}, {"least", options.least}})
    if (blocks > layout.blocks())
      return invalid(std::string(key) + " = " + std::to_string(blocks) +
                     " is above the number of blocks of the model, " + std::to_string(layout.blocks()));
  std::unique_ptr<SplitPlanner> planner(new SplitPlanner(options, std::move(layout), context));
  if (options.kind == CutKind::kRandom)
    for (std::size_t client = 0; client < context.clients; ++client) {
      const std::size_t choices = planner->layout_.blocks() - options.least + 1;
      planner->cuts_[client] =
          static_cast<std::uint16_t>(options.least + context.rng.fork("cut", client).below(choices));
    }
  return std::unique_ptr<Planner>(std::move(planner));
}

std::size_t SplitPlanner::most(ClientId client) const {
  const double share = options_.levels.shares[population_.level(client)];
  const auto held = static_cast<std::size_t>(share * static_cast<double>(layout_.blocks()) + 1e-9);
  return std::max(held, options_.least);
}

std::size_t SplitPlanner::cut(ClientId client) const {
  FEDGE_CHECK(client.value() < cuts_.size(), "a client of the run");
  return std::clamp<std::size_t>(cuts_[client.value()], options_.least, most(client));
}

Coverage SplitPlanner::plan(const PlanRequest& request) {
  if (options_.kind == CutKind::kAdaptive)
    for (const std::uint64_t now = (request.round.value() - 1) / options_.period; periods_ < now; ++periods_)
      adapt(periods_ * options_.period + 1, (periods_ + 1) * options_.period);
  return layout_.below(cut(request.client));
}

double SplitPlanner::share(ClientId client) const {
  return static_cast<double>(layout_.below(cut(client)).count()) / static_cast<double>(parameters_);
}

void SplitPlanner::delivered(const Delivered& update) {
  if (options_.kind != CutKind::kAdaptive) return;
  observed_[update.client.value()] = {.round = update.round.value(),
                                      .loss = update.loss,
                                      .seconds = std::chrono::duration<double>(update.time).count()};
}

// Moves the cuts of the clients that delivered in the rounds first .. last.
void SplitPlanner::adapt(std::uint64_t first, std::uint64_t last) {
  std::vector<std::size_t> clients;
  std::vector<double> times;
  double sum = 0;
  for (std::size_t client = 0; client < observed_.size(); ++client) {
    const Observed& update = observed_[client];
    if (update.round < first || update.round > last || !std::isfinite(update.loss)) continue;
    clients.push_back(client);
    times.push_back(update.seconds);
    sum -= update.loss;
  }
  if (clients.empty()) return;
  const double mean = sum / static_cast<double>(clients.size());
  double squares = 0;
  for (const std::size_t client : clients) squares += std::pow(-observed_[client].loss - mean, 2);
  const double deviation = std::sqrt(squares / static_cast<double>(clients.size())) + 1e-8;
  const double usual = median(times);
  for (const std::size_t client : clients) {
    const auto before = static_cast<double>(cut(ClientId(static_cast<std::uint32_t>(client))));
    const double better = (-observed_[client].loss - mean) / deviation;
    const double slower = usual > 0 ? std::max(0.0, (observed_[client].seconds - usual) / usual) : 0;
    const double wanted = round_half_to_even(before + options_.gamma * better - options_.kappa * slower);
    cuts_[client] = static_cast<std::uint16_t>(std::max(1.0, std::clamp(wanted, before - 1, before + 1)));
  }
}

PlannerPart read_split(config::Reader& section) {
  SplitOptions options;
  options.kind = kCutKinds[section.choice("cut", kCutNames, 0,
                                          "Behind how many blocks of the model a client is cut.\nadaptive: "
                                          "`blocks` at first; later more for clients "
                                          "whose loss is below the mean, and fewer for slow ones.\nfixed: "
                                          "`blocks`.\nrandom: drawn once for the run.\n"
                                          "resources: as many as its device holds.")];
  options.blocks = static_cast<std::size_t>(section.integer(
      "blocks", 2, {1, 1024}, "fixed, adaptive: number of blocks that a client runs (at first)."));
  options.least = static_cast<std::size_t>(
      section.integer("least", 1, {1, 1024}, "Minimum number of blocks that a client runs."));
  options.levels.shares = section.numbers(
      "shares", options.levels.shares, {1e-3, 1.0},
      "The levels of devices. Each is the fraction of the model's blocks that a device of this level holds.");
  if (options.levels.shares.empty() || options.levels.shares.size() > kMaxLevels)
    section.fail("shares", "lists " + std::to_string(options.levels.shares.size()) +
                               " levels, expected 1 to " + std::to_string(kMaxLevels));
  read_population(section, "shares", options.levels.fractions, options.levels);
  options.period = static_cast<std::uint64_t>(
      section.integer("period", 5, {1, 1'000'000},
                      "adaptive: number of rounds after which the cuts move, by at most one block."));
  options.gamma =
      section.number("gamma", options.gamma, {0.0, 100.0},
                     "adaptive: blocks that a client takes over for each standard deviation by which its "
                     "loss is below the mean.");
  options.kappa =
      section.number("kappa", options.kappa, {0.0, 100.0},
                     "adaptive: blocks that a client gives up if it takes twice the median time.");
  options.cut_ranks = static_cast<std::size_t>(section.integer(
      "cut_ranks", 0, {0, 1024},
      "Number of ranks that are trained in the two blocks next to the cut. 0: all ranks of the adapters."));
  return {.make = [options](const PlannerContext& context) { return SplitPlanner::make(options, context); },
          .cut_ranks = options.cut_ranks,
          .reads_losses = options.kind == CutKind::kAdaptive};
}

}  // namespace fedge::aggregation
