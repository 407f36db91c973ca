// Planners on random models and mixes against slow references: FedPLT's assignment as in its code, and slices
// parameter by parameter.
#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "aggregation/planners/slices.h"
#include "tests/unit/aggregation/planning.h"

namespace fedge::aggregation {
namespace {

using planning::plan;
using planning::planner;

std::string list(const std::vector<double>& values) {
  std::string text = "[";
  for (const double value : values) text += (text.size() > 1 ? ", " : "") + std::to_string(value);
  return text + "]";
}

std::string options_of(const std::vector<double>& shares, const std::vector<double>& fractions) {
  return "shares = " + list(shares) + "\nfractions = " + list(fractions) + "\n";
}

// One to three levels that tenths and quarters of 20 units can represent.
std::string random_mix(std::mt19937& engine) {
  const std::vector<double> possible = {1.0, 0.75, 0.5, 0.25, 0.2, 0.4, 0.1, 0.9, 0.05};
  const std::vector<std::vector<double>> fractions = {{1}, {0.3, 0.7}, {0.5, 0.25, 0.25}};
  const auto& chosen = fractions[engine() % 3];
  std::vector<double> shares;
  for (std::size_t i = 0; i < chosen.size(); ++i) shares.push_back(possible[engine() % possible.size()]);
  return options_of(shares, chosen);
}

// Returns the units of a layer that a coverage trains, by its biases.
std::set<std::size_t> units_of(const ParameterLayout& layout, std::uint32_t layer, const Coverage& coverage) {
  std::set<std::size_t> units;
  const TensorInfo& bias = layout.tensors()[2 * layer + 1];
  for (std::size_t i = 0; i < bias.size; ++i)
    if (coverage.contains(bias.offset + i)) units.insert(i);
  return units;
}

// The slice that keeps these units, decided for each parameter separately.
std::vector<bool> slow_slice(const ParameterLayout& layout, const std::vector<std::set<std::size_t>>& kept) {
  std::vector<bool> in(layout.size(), false);
  for (const TensorInfo& tensor : layout.tensors()) {
    const std::uint32_t l = tensor.layer;
    const std::size_t row = tensor.size / tensor.shape[0];
    for (std::size_t i = 0; i < tensor.size; ++i) {
      bool keep = kept[l].contains(i / row);
      if (tensor.shape.size() > 1 && l > 0) {
        const std::size_t input = i % row / (row / tensor.shape[1]);
        const std::size_t units_before = layout.tensors()[2 * l - 1].size;
        keep = keep && kept[l - 1].contains(input / (tensor.shape[1] / units_before));
      }
      in[tensor.offset + i] = keep;
    }
  }
  return in;
}

bool same(const Coverage& coverage, const std::vector<bool>& in) {
  for (std::size_t i = 0; i < in.size(); ++i)
    if (coverage.contains(i) != in[i]) return false;
  return coverage.end() <= in.size();
}

std::shared_ptr<const ParameterLayout> random_network(std::mt19937& engine) {
  const std::size_t c1 = 1 + engine() % 6;
  const std::size_t c2 = 1 + engine() % 9;
  const std::size_t places = 1 + engine() % 4;
  const std::size_t hidden = 1 + engine() % 13;
  return planning::chain({{c1, 2, 3, 3}, {c2, c1, 5, 5}, {hidden, c2 * places}, {1 + engine() % 5, hidden}});
}

}  // namespace

TEST_CASE("fedplt: parts are those of the published assignment") {
  std::mt19937 engine(1);
  const auto layout = planning::chain({{40, 3}, {20, 40}, {60, 20}, {20, 60}});
  for (int trial = 0; trial < 60; ++trial) {
    const std::string mix = random_mix(engine);
    const std::size_t clients = 1 + engine() % 40;
    CAPTURE(mix);
    CAPTURE(clients);
    const auto made = planner({"fedplt", mix + "split_output = true\n", layout, clients, engine()});
    for (std::uint32_t layer = 0; layer < 4; ++layer) {
      const std::size_t width = layout->tensors()[2 * layer + 1].size;
      // 20 pieces of width / 20 units: a multiple of every L, so that D = (1 - a) 20 pieces are whole
      // sub-layers of L. The pointer moves by the same number of units.
      std::size_t pointer = 0;
      for (std::uint32_t client = 0; client < clients; ++client) {
        const double share = made->share(ClientId(client));
        const auto left_out = static_cast<std::size_t>(std::lround((1 - share) * 20)) * width / 20;
        std::set<std::size_t> expected;
        for (std::size_t unit = 0; unit < width; ++unit) expected.insert(unit);
        for (std::size_t j = 0; j < left_out; ++j) expected.erase((pointer + j) % width);
        pointer += left_out;
        REQUIRE(units_of(*layout, layer, plan(*made, client)) == expected);
      }
    }
  }
}

TEST_CASE("fedplt: the clients that leave out two units of a layer differ by one at most") {
  std::mt19937 engine(2);
  const auto layout = planning::chain({{40, 3}, {20, 40}, {7, 20}});
  for (int trial = 0; trial < 100; ++trial) {
    const std::string mix = random_mix(engine);
    const std::size_t clients = 1 + engine() % 60;
    CAPTURE(mix);
    CAPTURE(clients);
    const auto made = planner({"fedplt", mix, layout, clients, engine()});
    for (std::uint32_t layer = 0; layer < 3; ++layer) {
      std::vector<int> trainers(layout->tensors()[2 * layer + 1].size, 0);
      for (std::uint32_t client = 0; client < clients; ++client)
        for (const std::size_t unit : units_of(*layout, layer, plan(*made, client))) ++trainers[unit];
      const auto [least, most] = std::minmax_element(trainers.begin(), trainers.end());
      REQUIRE(*most - *least <= 1);
      if (layer == 2) REQUIRE(*least == static_cast<int>(clients));  // split_output is off
    }
  }
}

TEST_CASE(
    "fedplt: with rotate, every round is balanced, and over a cycle a client trains each unit equally") {
  std::mt19937 engine(5);
  const auto layout = planning::chain({{40, 3}, {20, 40}, {7, 20}});
  constexpr std::uint32_t kCycle = 20;  // a multiple of every number of sub-layers that these mixes have
  for (int trial = 0; trial < 30; ++trial) {
    const std::string mix = random_mix(engine);
    const std::size_t clients = 1 + engine() % 30;
    CAPTURE(mix);
    CAPTURE(clients);
    const auto made = planner({"fedplt", mix + "rotate = true\n", layout, clients, engine()});
    const auto first = static_cast<std::uint32_t>(1 + engine() % 1000);
    for (std::uint32_t layer = 0; layer < 2; ++layer) {
      const std::size_t units = layout->tensors()[2 * layer + 1].size;
      std::vector<std::vector<int>> times(clients, std::vector<int>(units, 0));
      for (std::uint32_t round = first; round < first + kCycle; ++round) {
        std::vector<int> trainers(units, 0);
        for (std::uint32_t client = 0; client < clients; ++client)
          for (const std::size_t unit : units_of(*layout, layer, plan(*made, client, round))) {
            ++trainers[unit];
            ++times[client][unit];
          }
        const auto [least, most] = std::minmax_element(trainers.begin(), trainers.end());
        REQUIRE(*most - *least <= 1);
      }
      for (std::uint32_t client = 0; client < clients; ++client) {
        // Sub-layers take turns: each is trained in a_k of the rounds.
        const std::size_t trained = units_of(*layout, layer, plan(*made, client, first)).size();
        for (const int count : times[client])
          REQUIRE(static_cast<std::size_t>(count) * units == kCycle * trained);
      }
    }
  }
}

TEST_CASE("fedplt and random mask: a unit is trained whole or not at all") {
  std::mt19937 engine(3);
  const auto layout = planning::chain({{20, 2, 3, 3}, {20, 20, 5, 5}, {40, 180}, {10, 40}});
  for (std::uint32_t trial = 0; trial < 10; ++trial) {
    const std::string mix = random_mix(engine);
    for (const char* kind : {"fedplt", "random_mask"}) {
      const auto made = planner({kind, mix, layout, 6, engine()});
      for (std::uint32_t client = 0; client < 6; ++client) {
        const Coverage coverage = plan(*made, client, 1 + trial);
        for (std::uint32_t layer = 0; layer < 4; ++layer) {
          const std::set<std::size_t> units = units_of(*layout, layer, coverage);
          const TensorInfo& weight = layout->tensors()[2 * layer];
          const auto counts = planning::covered(weight, coverage);
          for (std::size_t unit = 0; unit < counts.size(); ++unit)
            REQUIRE(counts[unit] == (units.contains(unit) ? weight.size / counts.size() : 0));
        }
      }
    }
  }
}

TEST_CASE("slices: coverages are those found parameter by parameter, within the bound of their ranges") {
  std::mt19937 engine(4);
  for (int trial = 0; trial < 60; ++trial) {
    CAPTURE(trial);
    const auto layout = random_network(engine);
    const auto layers = read_layers(*layout);
    REQUIRE(layers);
    std::vector<Window> windows;
    std::vector<std::set<std::size_t>> kept;
    std::vector<std::size_t> counts;
    for (const PlanLayer& layer : *layers) {
      const std::size_t count = 1 + engine() % layer.units;
      windows.push_back({engine() % layer.units, count, layer.units});
      counts.push_back(count);
      kept.emplace_back();
      for (std::size_t j = 0; j < count; ++j) kept.back().insert((windows.back().begin + j) % layer.units);
    }
    const Coverage coverage = slice_coverage(*layers, windows);
    REQUIRE(same(coverage, slow_slice(*layout, kept)));
    REQUIRE(coverage.count() == slice_size(*layers, counts));
    REQUIRE(coverage.ranges().size() <= slice_ranges_max(*layers, counts));
  }
}

TEST_CASE("fedrolex: over a cycle every unit of a layer is trained equally often") {
  std::mt19937 engine(5);
  for (int trial = 0; trial < 20; ++trial) {
    const auto layout = random_network(engine);
    const std::string mix = random_mix(engine);
    CAPTURE(mix);
    const auto made = planner({"fedrolex", mix, layout, 4, engine()});
    for (std::uint32_t layer = 0; layer < 4; ++layer) {
      const std::size_t width = layout->tensors()[2 * layer + 1].size;
      const auto first = static_cast<std::uint32_t>(1 + engine() % 1000);
      for (std::uint32_t client = 0; client < 4; ++client) {
        const std::size_t count = units_of(*layout, layer, plan(*made, client)).size();
        std::vector<std::size_t> trained(width, 0);
        for (std::uint32_t round = first; round < first + width; ++round)
          for (const std::size_t unit : units_of(*layout, layer, plan(*made, client, round))) ++trained[unit];
        const std::size_t expected = layer == 3 ? width : count;
        REQUIRE(trained == std::vector<std::size_t>(width, expected));
      }
    }
  }
}

}  // namespace fedge::aggregation
