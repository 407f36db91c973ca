#include "sim/attacks.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/config/document.h"

namespace fedge::sim {
namespace {

using Updates = std::vector<std::vector<float>>;

std::vector<float> result(const AttackSpec& spec, const Updates& honest, std::size_t hostile,
                          std::vector<float> own) {
  const std::vector<std::span<const float>> views(honest.begin(), honest.end());
  attack(spec, views, hostile, Rng(5), own);
  return own;
}

double distance(const std::vector<float>& a, const std::vector<float>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    sum += static_cast<double>(a[i] - b[i]) * static_cast<double>(a[i] - b[i]);
  return std::sqrt(sum);
}

}  // namespace

TEST_CASE("alie: z is the published figure for usual numbers of clients") {
  // Phi^-1((n - m - s) / (n - m)), s = floor(n / 2 + 1) - m, worked out with a table of the normal
  // distribution.
  CHECK(alie_z(10, 2) == doctest::Approx(0.0).epsilon(1e-3));
  CHECK(alie_z(20, 4) == doctest::Approx(0.157).epsilon(4e-3));
  CHECK(alie_z(20, 8) == doctest::Approx(0.674).epsilon(1e-3));
  CHECK(alie_z(50, 24) == doctest::Approx(1.426).epsilon(1e-3));
  CHECK(alie_z(100, 40) == doctest::Approx(0.903).epsilon(1e-3));
}

TEST_CASE("attacks: hand-computed on two honest updates") {
  // mu = (2, 0), sd = (sqrt 2, 0)
  const Updates honest = {{1, 0}, {3, 0}};
  CHECK(result({.kind = AttackKind::kSignFlip, .strength = 10}, honest, 1, {0.5F, -2}) ==
        std::vector<float>{-5, 20});
  CHECK(result({.kind = AttackKind::kIpm}, honest, 1, {9, 9}) == std::vector<float>{-1, 0});
  const auto alie = result({.kind = AttackKind::kAlie, .strength = 1}, honest, 1, {9, 9});
  CHECK(alie[0] == doctest::Approx(2 - std::sqrt(2.0)));
  CHECK(alie[1] == 0);
  CHECK(result({.kind = AttackKind::kLabelFlip}, honest, 1, {9, 9}) == std::vector<float>{9, 9});
}

TEST_CASE("gaussian: zero mean and the deviation asked for, the same for the same stream") {
  const auto drawn =
      result({.kind = AttackKind::kGaussian, .strength = 3}, {}, 1, std::vector<float>(20'000));
  double sum = 0;
  double squares = 0;
  for (const float value : drawn) {
    sum += static_cast<double>(value);
    squares += static_cast<double>(value) * static_cast<double>(value);
  }
  CHECK(std::abs(sum / 20'000) < 0.1);
  CHECK(std::sqrt(squares / 20'000) == doctest::Approx(3).epsilon(0.03));
  CHECK(drawn == result({.kind = AttackKind::kGaussian, .strength = 3}, {}, 1, std::vector<float>(20'000)));
}

TEST_CASE("min_max: as far as the honest are from each other and no farther, in the direction of -sd") {
  const Updates honest = {{1, 2, 0}, {-1, 0.5F, 0.25F}, {0.5F, -1, 1}, {2, 1, -1}};
  const auto hostile = result({.kind = AttackKind::kMinMax}, honest, 1, {0, 0, 0});
  double bound = 0;
  double reached = 0;
  for (const auto& a : honest) {
    reached = std::max(reached, distance(a, hostile));
    for (const auto& b : honest) bound = std::max(bound, distance(a, b));
  }
  CHECK(reached == doctest::Approx(bound).epsilon(1e-6));
  for (std::size_t i = 0; i < 3; ++i) {
    double mean = 0;
    for (const auto& update : honest) mean += static_cast<double>(update[i]) / 4;
    CHECK(static_cast<double>(hostile[i]) < mean);
  }
}

TEST_CASE("attacks: without an honest update to start from the update stays as it is") {
  for (const AttackKind kind : {AttackKind::kAlie, AttackKind::kIpm, AttackKind::kMinMax})
    CHECK(result({.kind = kind}, {}, 3, {1, 2}) == std::vector<float>{1, 2});
}

TEST_CASE("attackers: as many as asked for, the same for the same seed, others for another") {
  const AttackSpec spec{.kind = AttackKind::kSignFlip, .fraction = 0.29};
  const auto chosen = choose_attackers(spec, 100, Rng(1));
  CHECK(std::count(chosen.begin(), chosen.end(), true) == 29);
  CHECK(chosen == choose_attackers(spec, 100, Rng(1)));
  CHECK(chosen != choose_attackers(spec, 100, Rng(2)));
  const auto none = choose_attackers({}, 100, Rng(1));
  CHECK(std::count(none.begin(), none.end(), true) == 0);
}

}  // namespace fedge::sim
