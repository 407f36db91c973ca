// Helpers of the planner tests: small models as layouts, planners as read from a run file, and a slow count
// of the units that a coverage trains.
#pragma once

#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <vector>

#include "aggregation/planners/planner.h"
#include "core/config/document.h"

namespace fedge::aggregation::planning {

using Shapes = std::vector<std::vector<std::size_t>>;

// A model with one layer for each weight shape; every weight has a bias.
inline std::shared_ptr<const ParameterLayout> chain(const Shapes& weights) {
  auto layout = std::make_shared<ParameterLayout>();
  for (std::uint32_t l = 0; l < weights.size(); ++l) {
    const std::string name = "dense" + std::to_string(l + 1);
    layout->add(name + ".weight", weights[l], {.layer = l});
    layout->add(name + ".bias", {weights[l].front()}, {.layer = l});
  }
  return layout;
}

// 4-10-5-3, 123 parameters: layers of 50 + 55 + 18, starting at 0, 50 and 105.
inline std::shared_ptr<const ParameterLayout> small_mlp() { return chain({{10, 4}, {5, 10}, {3, 5}}); }

// Two 5x5 convolutions (1 to 4 to 6 channels, 3x3 positions remain), dense 8, 3 classes. 1,177 parameters:
// 104 + 606 + 440 + 27, starting at 0, 104, 710 and 1,150.
inline std::shared_ptr<const ParameterLayout> small_cnn() {
  return chain({{4, 1, 5, 5}, {6, 4, 5, 5}, {8, 54}, {3, 8}});
}

struct Wanted {
  std::string kind;
  std::string options;  // TOML
  std::shared_ptr<const ParameterLayout> layout;
  std::size_t clients = 1;
  std::uint64_t seed = 1;
};

inline Result<std::unique_ptr<Planner>> try_planner(const Wanted& wanted) {
  for (const PlannerKind& kind : planner_kinds()) {
    if (wanted.kind != kind.name) continue;
    FEDGE_TRY(document, config::parse_toml(wanted.options, "run.toml"));
    config::Reader section(document.root, "planner", document.name);
    const PlannerFactory make = kind.read(section).make;
    FEDGE_TRY_VOID(section.finish());
    return make({wanted.layout, wanted.clients, Rng(wanted.seed)});
  }
  return invalid("no planner of this kind: " + wanted.kind);
}

inline std::unique_ptr<Planner> planner(const Wanted& wanted) {
  auto made = try_planner(wanted);
  const std::string error = made ? "" : made.error().message;
  CAPTURE(error);
  REQUIRE(made);
  return std::move(made).value();
}

inline std::string error_of(const Wanted& wanted) {
  const auto made = try_planner(wanted);
  REQUIRE_FALSE(made);
  return made.error().message;
}

inline Coverage plan(Planner& planner, std::uint32_t client, std::uint32_t round = 1) {
  return planner.plan({RoundNumber(round), ClientId(client), Rng(7).fork("plan", round, client)});
}

// Returns for each unit of a tensor [units, ...] how many of its parameters the coverage contains.
inline std::vector<std::size_t> covered(const TensorInfo& tensor, const Coverage& coverage) {
  std::vector<std::size_t> counts(tensor.shape.front(), 0);
  const std::size_t row = tensor.size / tensor.shape.front();
  for (std::size_t i = 0; i < tensor.size; ++i)
    if (coverage.contains(tensor.offset + i)) ++counts[i / row];
  return counts;
}

}  // namespace fedge::aggregation::planning
