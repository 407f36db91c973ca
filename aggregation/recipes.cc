#include <array>
#include <string_view>

#include "aggregation/spec.h"

namespace fedge::aggregation {

std::span<const Recipe> recipes() {
  static constexpr std::array kRecipes = {
      Recipe{
          .name = "fedavg", .paper = "McMahan et al. 2017", .summary = "the mean of the updates, by samples"},
      Recipe{.name = "fedprox",
             .paper = "Li et al. 2020",
             .summary = "clients are held back towards the round's model",
             .objective = "proximal"},
      Recipe{.name = "fedavgm",
             .paper = "Hsu, Qi, Brown 2019",
             .summary = "momentum on the server",
             .server_optimizer = "momentum"},
      Recipe{.name = "fedadagrad",
             .paper = "Reddi et al. 2021",
             .summary = "Adagrad on the server",
             .server_optimizer = "adagrad"},
      Recipe{.name = "fedadam",
             .paper = "Reddi et al. 2021",
             .summary = "Adam on the server",
             .server_optimizer = "adam"},
      Recipe{.name = "fedyogi",
             .paper = "Reddi et al. 2021",
             .summary = "Yogi on the server",
             .server_optimizer = "yogi"},
      Recipe{.name = "scaffold",
             .paper = "Karimireddy et al. 2020",
             .summary = "control variates correct the drift of each client",
             .aggregator = "uniform_mean",
             .objective = "scaffold"},
      Recipe{.name = "fednova",
             .paper = "Wang et al. 2020",
             .summary = "updates are normalised by the local work behind them",
             .aggregator = "fednova"},
      Recipe{.name = "fedbuff",
             .paper = "Nguyen et al. 2022",
             .summary = "asynchronous: the model moves whenever a buffer of updates is full",
             .aggregator = "uniform_mean",
             .schedule = "buffered"},
      Recipe{.name = "fedplt",
             .paper = "Dabaja and El-Azouzi 2026",
             .summary = "clients train the same groups of rows of each layer all along",
             .planner = "fedplt"},
      Recipe{.name = "random_mask",
             .paper = "the baseline of fedplt without its assignment",
             .summary = "clients train random rows of each layer, drawn anew every round",
             .planner = "random_mask"},
      Recipe{.name = "heterofl",
             .paper = "Diao et al. 2021",
             .summary = "clients train thinner networks: the first units of each layer",
             .planner = "heterofl"},
      Recipe{.name = "fjord",
             .paper = "Horvath et al. 2021",
             .summary = "thinner networks, of a random nested width in every step",
             .planner = "fjord"},
      Recipe{.name = "fedrolex",
             .paper = "Alam et al. 2022",
             .summary = "thinner networks: a window of units that rolls on every round",
             .planner = "fedrolex"},
  };
  return kRecipes;
}

const Recipe& recipe_of(const config::Table& root) {
  const Recipe& fallback = recipes().front();
  const auto section = root.find("strategy");
  if (section == root.end()) return fallback;
  const auto* strategy = std::get_if<config::Table>(&section->second.data);
  if (strategy == nullptr) return fallback;
  const auto kind = strategy->find("kind");
  if (kind == strategy->end()) return fallback;
  const auto* name = std::get_if<std::string>(&kind->second.data);
  for (const Recipe& recipe : recipes())
    if (name != nullptr && *name == recipe.name) return recipe;
  return fallback;
}

}  // namespace fedge::aggregation
