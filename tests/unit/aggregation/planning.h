// What the tests of planners share: small models as layouts, planners as a run file makes them, and
// which units of a layer a coverage trains, found parameter by parameter.
#pragma once

#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <vector>

#include "aggregation/planners/planner.h"
#include "core/config/document.h"

namespace fedge::aggregation::planning {

using Shapes = std::vector<std::vector<std::size_t>>;

// Weights of these shapes, each with its bias, one layer each.
inline std::shared_ptr<const ParameterLayout> chain(const Shapes& weights) {
  auto layout = std::make_shared<ParameterLayout>();
  for (std::uint32_t l = 0; l < weights.size(); ++l) {
    const std::string name = "dense" + std::to_string(l + 1);
    layout->add(name + ".weight", weights[l], {.layer = l});
    layout->add(name + ".bias", {weights[l].front()}, {.layer = l});
  }
  return layout;
}

// 4-10-5-3, 123 parameters: 50 + 55 + 18, from 0, 50 and 105 on.
inline std::shared_ptr<const ParameterLayout> small_mlp() { return chain({{10, 4}, {5, 10}, {3, 5}}); }

// Two 5x5 convolutions (1 to 4 to 6 channels, 3x3 places left), dense 8, 3 classes: 1,177 parameters:
// 104 + 606 + 440 + 27, from 0, 104, 710 and 1,150 on.
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
    const PlannerFactory make = kind.read(section);
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

// For each unit of a tensor [units, ...]: how many of its parameters the coverage has.
inline std::vector<std::size_t> covered(const TensorInfo& tensor, const Coverage& coverage) {
  std::vector<std::size_t> counts(tensor.shape.front(), 0);
  const std::size_t row = tensor.size / tensor.shape.front();
  for (std::size_t i = 0; i < tensor.size; ++i)
    if (coverage.contains(tensor.offset + i)) ++counts[i / row];
  return counts;
}

}  // namespace fedge::aggregation::planning
