// Compares mixing with an explicit matrix. Mixing averages because the weights are symmetric and rows and
// columns add up to 1.
#include "lab/gossip/mixing.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "core/platform/thread_pool.h"

namespace fedge::lab {
namespace {

using swarm::Overlay;
using swarm::Pseudonym;
using Edges = std::vector<std::pair<Pseudonym, Pseudonym>>;
using Matrix = std::vector<std::vector<double>>;
using Vectors = std::vector<std::vector<float>>;

// Slow reference: asks the overlay about every pair.
Matrix matrix_of(const Overlay& overlay) {
  const std::size_t n = overlay.size();
  const auto degree = [&](Pseudonym i) {
    std::size_t count = 0;
    for (Pseudonym j = 0; j < n; ++j) count += overlay.adjacent(i, j) ? 1U : 0U;
    return count;
  };
  Matrix matrix(n, std::vector<double>(n, 0.0));
  for (Pseudonym i = 0; i < n; ++i) {
    for (Pseudonym j = 0; j < n; ++j)
      if (i != j && overlay.adjacent(i, j))
        matrix[i][j] = 1.0 / (1.0 + static_cast<double>(std::max(degree(i), degree(j))));
    double others = 0;
    for (Pseudonym j = 0; j < n; ++j) others += matrix[i][j];
    matrix[i][i] = 1.0 - others;
  }
  return matrix;
}

std::vector<std::pair<std::string, Overlay>> overlays() {
  Edges star;
  Edges path;
  for (Pseudonym i = 1; i < 8; ++i) {
    star.emplace_back(0, i);
    path.emplace_back(i, i - 1);
  }
  return {{"star", Overlay(8, star)},
          {"path", Overlay(8, path)},
          {"two parts", Overlay(4, Edges{{0, 1}, {2, 3}})},
          {"nobody's neighbour", Overlay(3, Edges{{0, 1}})},
          {"random", Overlay::random(50, 10, Rng(3))},
          {"complete", Overlay::random(9, 8, Rng(3))}};
}

Vectors random_models(std::size_t count, std::size_t size) {
  Vectors models(count, std::vector<float>(size));
  Rng rng(11);
  for (auto& model : models)
    for (float& value : model) value = static_cast<float>(rng.normal());
  return models;
}

std::vector<std::span<float>> spans(Vectors& models) { return {models.begin(), models.end()}; }

Vectors mixed(const Overlay& overlay, Vectors models, std::size_t threads = 1) {
  ThreadPool pool(threads);
  mix(MixingWeights(overlay), spans(models), pool);
  return models;
}

}  // namespace

TEST_CASE("mixing: a hand-computed path of three, whose middle has twice the neighbours") {
  const Vectors after = mixed(Overlay(3, Edges{{0, 1}, {1, 2}}), {{3, 0}, {0, 3}, {6, 3}});
  CHECK(after == Vectors{{2, 1}, {3, 2}, {4, 3}});
}

TEST_CASE("mixing: weights are those of the matrix written out in full") {
  for (const auto& [name, overlay] : overlays()) {
    CAPTURE(name);
    const Matrix expected = matrix_of(overlay);
    const MixingWeights weights(overlay);
    REQUIRE(weights.size() == overlay.size());
    for (Pseudonym i = 0; i < overlay.size(); ++i) {
      std::vector<double> row(overlay.size(), 0.0);
      for (const auto& [client, weight] : weights.row(i)) row[client] += weight;
      for (std::size_t j = 0; j < row.size(); ++j)
        CHECK(row[j] == doctest::Approx(expected[i][j]).epsilon(1e-14));
      CHECK(std::ranges::is_sorted(weights.row(i), {}, &MixingWeights::Entry::client));
    }
  }
}

TEST_CASE("mixing: weights are symmetric, not negative, and doubly stochastic") {
  for (const auto& [name, overlay] : overlays()) {
    CAPTURE(name);
    const MixingWeights weights(overlay);
    Matrix matrix(overlay.size(), std::vector<double>(overlay.size(), 0.0));
    for (Pseudonym i = 0; i < overlay.size(); ++i)
      for (const auto& [client, weight] : weights.row(i)) matrix[i][client] = weight;
    for (std::size_t i = 0; i < matrix.size(); ++i) {
      double row = 0;
      double column = 0;
      for (std::size_t j = 0; j < matrix.size(); ++j) {
        CHECK(matrix[i][j] >= 0);
        CHECK(matrix[i][j] == matrix[j][i]);
        row += matrix[i][j];
        column += matrix[j][i];
      }
      CHECK(row == doctest::Approx(1).epsilon(1e-14));
      CHECK(column == doctest::Approx(1).epsilon(1e-14));
    }
  }
}

TEST_CASE("mixing: models become what the full matrix makes of them, in models of more than one block") {
  for (const auto& [name, overlay] : overlays()) {
    CAPTURE(name);
    const Matrix matrix = matrix_of(overlay);
    const Vectors before = random_models(overlay.size(), 2500);
    const Vectors after = mixed(overlay, before);
    for (std::size_t i = 0; i < before.size(); ++i) {
      double worst = 0;
      for (std::size_t p = 0; p < before[i].size(); ++p) {
        double sum = 0;
        for (std::size_t j = 0; j < before.size(); ++j)
          sum += matrix[i][j] * static_cast<double>(before[j][p]);
        worst = std::max(worst, std::abs(sum - static_cast<double>(after[i][p])));
      }
      CHECK(worst < 3e-7);  // half a step of a float32 below 4
    }
  }
}

TEST_CASE("mixing, invariant: the mean of all models stays what it was") {
  for (const auto& [name, overlay] : overlays()) {
    CAPTURE(name);
    const Vectors before = random_models(overlay.size(), 1500);
    Vectors after = before;
    for (int round = 0; round < 5; ++round) after = mixed(overlay, after);
    for (std::size_t p = 0; p < 1500; ++p) {
      double moved = 0;
      for (std::size_t i = 0; i < before.size(); ++i)
        moved += static_cast<double>(after[i][p]) - static_cast<double>(before[i][p]);
      REQUIRE(std::abs(moved) / static_cast<double>(before.size()) < 5 * 3e-7);
    }
  }
}

TEST_CASE("mixing: models that are equal keep their bits") {
  const Overlay overlay = Overlay::random(50, 10, Rng(3));
  const Vectors equal(50, random_models(1, 2000).front());
  CHECK(mixed(overlay, equal) == equal);
}

TEST_CASE("mixing: again and again, models of a connected graph agree on their mean, those of parts do not") {
  Vectors models = {{0}, {4}, {8}, {16}};
  for (int round = 0; round < 60; ++round) models = mixed(Overlay(4, Edges{{0, 1}, {1, 2}, {2, 3}}), models);
  for (const auto& model : models) CHECK(model[0] == doctest::Approx(7).epsilon(1e-5));
  CHECK(mixed(Overlay(4, Edges{{0, 1}, {2, 3}}), {{0}, {4}, {8}, {16}}) == Vectors{{2}, {2}, {12}, {12}});
}

TEST_CASE("mixing: the same bits with one thread and three") {
  const Overlay overlay = Overlay::random(20, 5, Rng(1));
  const Vectors models = random_models(20, 5000);
  CHECK(mixed(overlay, models, 1) == mixed(overlay, models, 3));
}

TEST_CASE("mixing: the average and the distance to it, computed by hand") {
  Vectors models = {{1, 2}, {3, 2}, {5, 8}};
  Sequential alone;
  std::vector<float> centre(2);
  average(spans(models), centre, alone);
  CHECK(centre == std::vector<float>{3, 4});
  CHECK(consensus_distance(spans(models), centre, alone) == doctest::Approx((8.0 + 4.0 + 20.0) / 3));
}

TEST_CASE("mixing: an average of more than one block, and none of a disagreement where there is none") {
  Vectors models = random_models(7, 3000);
  ThreadPool threads(3);
  std::vector<float> centre(3000);
  average(spans(models), centre, threads);
  double distance = 0;
  for (std::size_t p = 0; p < centre.size(); ++p) {
    double sum = 0;
    for (const auto& model : models) sum += static_cast<double>(model[p]);
    REQUIRE(centre[p] == static_cast<float>(sum / 7));
    for (const auto& model : models)
      distance += std::pow(static_cast<double>(model[p]) - static_cast<double>(centre[p]), 2) / 7;
  }
  CHECK(consensus_distance(spans(models), centre, threads) == doctest::Approx(distance));
  Vectors equal(6, models.front());
  average(spans(equal), centre, threads);
  CHECK(centre == models.front());
  CHECK(consensus_distance(spans(equal), centre, threads) == 0);
}

}  // namespace fedge::lab
