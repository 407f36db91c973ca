#include "aggregation/spec.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>

#include "aggregation/own_parts.h"
#include "core/config/own_part.h"

namespace fedge::aggregation {
namespace {

// Smallest accepted total weight of a round; a format that allows less is a configuration error.
constexpr std::uint64_t kMinTotalWeight = std::uint64_t{1} << 20;

FixedPoint read_fixed_point(config::Reader& section) {
  const FixedPoint defaults;
  FixedPoint format;
  format.fraction_bits = static_cast<int>(
      section.integer("fraction_bits", defaults.fraction_bits, {1, 50},
                      "Precision of the sums. Updates are summed as integers in units of 2^-fraction_bits."));
  format.max_abs = section.number(
      "max_abs", defaults.max_abs, {1e-6, 1e9},
      "Maximum absolute value in an update. The coordinator refuses an update with a larger value.");
  const std::uint64_t total = format.max_total_weight().value();
  if (total < kMinTotalWeight)
    section.fail(section.has("max_abs") ? "max_abs" : "fraction_bits",
                 "with fraction_bits = " + std::to_string(format.fraction_bits) +
                     ", the sums of a round can hold only " + std::to_string(total) +
                     " samples; max_abs * 2^fraction_bits must be below 2^43");
  return format;
}

struct ScheduleKind {
  const char* name;
  const char* paper;
  const char* summary;
  ScheduleSpec (*read)(config::Reader& section);
};

ScheduleSpec read_synchronous(config::Reader&) { return {}; }

BarrierSpec read_barrier(config::Reader& section) {
  using Kind = BarrierSpec::Kind;
  const std::vector<std::string> names = {"asp", "bsp", "ssp", "pbsp", "pssp"};
  BarrierSpec spec;
  spec.kind = static_cast<Kind>(section.choice(
      "barrier", names, 0,
      "When a client may start its next task.\nasp: at once.\nbsp: when no other client has completed fewer "
      "tasks.\nssp: when no other client is more than barrier_staleness tasks behind.\npbsp: as bsp, but "
      "compared only with barrier_sample random clients, drawn again whenever a task ends.\npssp: as "
      "ssp, but compared only with such random clients."));
  spec.sample = static_cast<std::size_t>(
      section.integer("barrier_sample", static_cast<std::int64_t>(spec.sample), {1, 1'000'000},
                      "pbsp, pssp: number of random clients with which a client is compared."));
  spec.staleness = static_cast<std::uint64_t>(
      section.integer("barrier_staleness", static_cast<std::int64_t>(spec.staleness), {0, 1'000'000},
                      "ssp, pssp: maximum number of tasks by which a client may be ahead when it starts."));
  const std::string without =
      "has no effect with barrier = \"" + names[static_cast<std::size_t>(spec.kind)] + "\"";
  if (section.has("barrier_sample") && spec.kind != Kind::kPbsp && spec.kind != Kind::kPssp)
    section.fail("barrier_sample", without, {"strategy.schedule.barrier"});
  if (section.has("barrier_staleness") && spec.kind != Kind::kSsp && spec.kind != Kind::kPssp)
    section.fail("barrier_staleness", without, {"strategy.schedule.barrier"});
  return spec;
}

ScheduleSpec read_buffered(config::Reader& section) {
  ScheduleSpec spec{.buffered = true};
  spec.buffer_size = static_cast<std::size_t>(section.integer(
      "buffer_size", 10, {1, 1'000'000}, "Number of updates that are aggregated into one new model."));
  spec.staleness_exponent =
      section.number("staleness_exponent", 0.5, {0.0, 100.0},
                     "An update that is s models old has the weight 1 / (1 + s)^staleness_exponent.");
  spec.max_staleness = static_cast<std::uint64_t>(
      section.integer("max_staleness", 0, {0, 1'000'000},
                      "Maximum age of an update in models; older updates are refused. 0: no limit."));
  spec.barrier = read_barrier(section);
  return spec;
}

constexpr std::array kSchedules = {
    ScheduleKind{"synchronous", "McMahan et al. 2017", "rounds, in which the selected clients start together",
                 read_synchronous},
    ScheduleKind{"buffered", "Nguyen et al. 2022",
                 "asynchronous; a new model whenever buffer_size updates have arrived", read_buffered},
};

using config::names_of;

// Follows the error about an unknown kind of a part that programs may register.
template <class Kind>
std::string hint_of(std::span<const Kind>) {
  return "";
}
std::string hint_of(std::span<const AggregatorKind>) {
  return config::own_program_hint("an aggregator", /*on_clients=*/false);
}
std::string hint_of(std::span<const SamplerKind>) {
  return config::own_program_hint("a sampler", /*on_clients=*/false);
}
std::string hint_of(std::span<const PlannerKind>) {
  return config::own_program_hint("a planner", /*on_clients=*/false);
}
std::string hint_of(std::span<const ServerOptimizerKind>) {
  return config::own_program_hint("a server optimizer", /*on_clients=*/false);
}

// The position of a kind's name; 0, the default, if it is empty.
std::size_t index_of(const std::vector<std::string>& names, const std::string& name) {
  const auto found = std::find(names.begin(), names.end(), name);
  return found == names.end() ? 0 : static_cast<std::size_t>(found - names.begin());
}

// Reads the kind of a part's section. The recipe may fix it to `fixed`; another choice is then an error.
// `implied` is the default if the recipe does not.
template <class Kind>
const Kind& choose(config::Reader& section, std::span<const Kind> kinds, const Recipe& recipe,
                   const std::string& fixed, const char* doc, const std::string& implied = "") {
  const std::vector<std::string> names = names_of(kinds);
  section.depends_on("strategy.kind");
  const std::size_t fallback = index_of(names, fixed.empty() ? implied : fixed);
  const std::size_t chosen = section.choice("kind", names, fallback, doc, hint_of(kinds));
  if (!fixed.empty() && names[chosen] != fixed)
    section.fail("kind",
                 std::string("strategy.kind = \"") + recipe.name + "\" requires \"" + fixed +
                     "\"; remove this key, or use strategy.kind = \"fedavg\"",
                 {"strategy.kind"});
  return kinds[chosen];
}

template <class Kind>
std::string traits_of(const Kind&) {
  return "";
}

std::string traits_of(const PlannerKind& kind) {
  switch (kind.traits.local_model) {
    case LocalModel::kWhole:
      return "clients run the whole network";
    case LocalModel::kSlice:
      return "clients run a narrower network";
    case LocalModel::kNested:
      return "clients run narrower networks of several widths";
    case LocalModel::kPrefix:
      return "clients run the model with the first ranks of its adapters";
    case LocalModel::kBlock:
      return "clients run the whole network and train the same block of it";
    case LocalModel::kSplit:
      return "clients run the first blocks of the network";
  }
  return "";
}

std::string traits_of(const AggregatorKind& kind) {
  std::string text = kind.traits.linear ? "linear" : "not linear";
  text += kind.traits.keeps_individuals ? ", keeps all updates of a round" : ", sums updates as they arrive";
  text += kind.traits.partial_updates ? ", accepts partial updates" : ", requires updates of the whole model";
  return text + (kind.traits.adapters ? ", only for adapters" : "");
}

}  // namespace

namespace {

void read_eligibility(config::Reader& section, SamplingSpec& spec) {
  const std::string where = section.text(
      "where", "",
      "Condition on the labels of clients, for example \"label == 'ward-3' and not label == 'test'\". Only "
      "clients that fulfil it take part in the run. Labels are given with fedge token create --labels or "
      "fedge client set --labels, in a simulation with simulation.labels. Empty: all clients of the "
      "project.");
  auto filter = ClientFilter::parse(where);
  if (!filter)
    section.fail("where", filter.error().message);
  else
    spec.where = std::move(*filter);
  spec.quarantine_after = static_cast<std::uint32_t>(section.integer(
      "quarantine_after", spec.quarantine_after, {0, 1000},
      "Number of failed trainings in succession after which a client is not asked to train for "
      "quarantine_rounds rounds. A client fails if it reports an error or sends a damaged or invalid update; "
      "a lost "
      "connection, "
      "a passed deadline or a rule of its owner is no failure. After the quarantine, one more failure is "
      "enough for the next, until an update is accepted. If fewer than min_available others are connected, "
      "clients in quarantine take part. Without effect with differential privacy and poisson. 0: no "
      "quarantine."));
  spec.quarantine_rounds = static_cast<std::uint32_t>(section.integer(
      "quarantine_rounds", spec.quarantine_rounds, {1, 1'000'000},
      "Number of rounds that a quarantine lasts. With a buffered schedule: in units of run.round_deadline."));
}

}  // namespace

SamplingSpec read_sampling(config::Reader& root, const std::string& implied_kind) {
  const SamplingSpec defaults;
  SamplingSpec spec;
  config::Reader section = root.section("sampling");
  const std::vector<std::string> names = names_of(sampler_kinds());
  const auto& sampler =
      sampler_kinds()[section.choice("kind", names, index_of(names, implied_kind),
                                     "How clients are selected for a round. With differential_privacy.kind = "
                                     "\"central\" the default is poisson.",
                                     hint_of(sampler_kinds()))];
  spec.kind = sampler.name;
  spec.make = read_part(sampler, section);
  spec.traits = spec.make()->traits();
  spec.clients_per_round = static_cast<std::size_t>(section.integer(
      "clients_per_round", static_cast<std::int64_t>(defaults.clients_per_round), {1, 1'000'000},
      "Number of updates that complete a round. With poisson, md or weights = \"ipw\", a round waits for all "
      "selected clients instead. With a buffered schedule: number of clients that train at the same time. "
      "Except with md, values above data.partition.clients count as that number."));
  spec.sized = section.has("clients_per_round");
  spec.over_selection = section.number("over_selection", defaults.over_selection, {1.0, 10.0},
                                       "A round selects clients_per_round times this number of clients. It "
                                       "does not wait for the slowest of them.");
  spec.min_available = static_cast<std::size_t>(
      section.integer("min_available", static_cast<std::int64_t>(defaults.min_available), {1, 1'000'000},
                      "Minimum number of connected clients for a round to start. With a buffered schedule: "
                      "for the run to start."));
  read_eligibility(section, spec);
  root.adopt(section);
  return spec;
}

namespace {

// Returns the value of `kind` if it is an aggregator's name and not a strategy's.
std::optional<std::string> misplaced_aggregator(const config::Reader& section,
                                                const std::vector<std::string>& strategies) {
  if (!section.has("kind")) return std::nullopt;
  config::Reader copy = section;  // its errors are not reported
  const std::string kind = copy.text("kind", "", "");
  const std::vector<std::string> aggregators = names_of(aggregator_kinds());
  const auto is_in = [&](const std::vector<std::string>& names) {
    return std::find(names.begin(), names.end(), kind) != names.end();
  };
  return is_in(aggregators) && !is_in(strategies) ? std::optional(kind) : std::nullopt;
}

const Recipe& choose_recipe(config::Reader& section) {
  std::vector<std::string> kinds = names_of(recipes());
  const auto misplaced = misplaced_aggregator(section, kinds);
  if (misplaced) kinds.push_back(*misplaced);  // for an error that is not about an unknown value
  const std::size_t chosen = section.choice(
      "kind", kinds, 0, "A published combination of the parts below. `fedge strategies` describes each.");
  if (!misplaced) return recipes()[chosen];
  section.fail("kind", "\"" + *misplaced +
                           "\" is an aggregator, not a strategy; set strategy.aggregator.kind = \"" +
                           *misplaced + "\" instead");
  return recipes().front();
}

}  // namespace

StrategySpec read_strategy(config::Reader& root, const std::string& implied_aggregator) {
  StrategySpec spec;
  config::Reader section = root.section("strategy");
  const Recipe& recipe = choose_recipe(section);
  spec.recipe = &recipe;
  spec.fixed_point = read_fixed_point(section);
  spec.max_weight = SampleCount(
      static_cast<std::uint64_t>(section.integer("max_weight", 0, {0, 100'000'000},
                                                 "Maximum number of samples for which an update counts. 0: "
                                                 "the number that data.partition gives the client.")));

  config::Reader planner = section.section("planner");
  const auto& plan =
      choose(planner, planner_kinds(), recipe, recipe.planner,
             "Which part of the model a client trains and sends. If not set, strategy.kind determines it.");
  spec.planner_kind = plan.name;
  spec.planner_traits = plan.traits;
  spec.planner = read_part(plan, planner);
  section.adopt(planner);

  config::Reader aggregator = section.section("aggregator");
  const auto& rule =
      choose(aggregator, aggregator_kinds(), recipe, recipe.aggregator,
             "How the updates of a round are combined into one aggregate. If not set, strategy.kind "
             "determines it. With differential privacy, uniform_mean replaces the default mean.",
             implied_aggregator);
  spec.aggregator_kind = rule.name;
  spec.traits = rule.traits;
  spec.aggregator = read_part(rule, aggregator);
  section.adopt(aggregator);

  config::Reader optimizer = section.section("server_optimizer");
  const auto& mover = choose(optimizer, server_optimizer_kinds(), recipe, recipe.server_optimizer,
                             "How the aggregate changes the model. If not set, strategy.kind determines it.");
  spec.server_optimizer_kind = mover.name;
  spec.server_optimizer = read_part(mover, optimizer);
  spec.sums_clients = mover.sums_clients;
  section.adopt(optimizer);

  config::Reader schedule = section.section("schedule");
  spec.schedule =
      choose(schedule, std::span<const ScheduleKind>(kSchedules), recipe, recipe.schedule,
             "When updates are aggregated into a new model. If not set, strategy.kind determines it.")
          .read(schedule);
  section.adopt(schedule);
  root.adopt(section);
  return spec;
}

std::vector<PartDoc> describe_parts() {
  std::vector<PartDoc> docs;
  const auto describe = [&](const std::string& name, const auto& kinds) {
    for (const auto& kind : kinds) {
      PartDoc doc{name, kind.name, kind.paper, kind.summary, traits_of(kind), {}};
      const config::Table empty;
      config::Reader section(empty, name, "", &doc.options);
      const auto read = config::failure_as_error([&]() -> Result<void> {
        config::guarded(name + " " + kind.name, [&] { kind.read(section); });
        return {};
      });
      if (!read) doc.summary += " (its options cannot be described: " + read.error().message + ")";
      docs.push_back(std::move(doc));
    }
  };
  describe("sampling", sampler_kinds());
  describe("strategy.planner", planner_kinds());
  describe("strategy.aggregator", aggregator_kinds());
  describe("strategy.server_optimizer", server_optimizer_kinds());
  describe("strategy.schedule", kSchedules);
  return docs;
}

}  // namespace fedge::aggregation
