#include "sim/attacks/attacks.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/config/document.h"

namespace fedge::sim {
namespace {

using Vectors = std::vector<std::vector<float>>;

class VectorValues final : public aggregation::UpdateValues {
 public:
  explicit VectorValues(std::vector<float> values) : values_(std::move(values)) {}
  Result<void> read(std::size_t first, std::span<float> out) const override {
    if (first + out.size() > values_.size()) return Error{ErrorCode::kResource, "shorter than the others"};
    std::copy_n(values_.begin() + static_cast<std::ptrdiff_t>(first), out.size(), out.begin());
    return {};
  }

 private:
  std::vector<float> values_;
};

Updates updates_of(const Vectors& vectors) {
  Updates updates;
  for (const auto& vector : vectors) updates.push_back(std::make_shared<VectorValues>(vector));
  return updates;
}

std::vector<float> result(const AttackSpec& spec, const Vectors& honest, std::size_t hostile,
                          std::vector<float> own) {
  REQUIRE(attack(spec, updates_of(honest), hostile, Rng(5), own));
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
  // Phi^-1((n - m - s) / (n - m)), s = floor(n / 2 + 1) - m, computed with a table of the normal
  // distribution.
  CHECK(alie_z(10, 2) == doctest::Approx(0.0).epsilon(1e-3));
  CHECK(alie_z(20, 4) == doctest::Approx(0.157).epsilon(4e-3));
  CHECK(alie_z(20, 8) == doctest::Approx(0.674).epsilon(1e-3));
  CHECK(alie_z(50, 24) == doctest::Approx(1.426).epsilon(1e-3));
  CHECK(alie_z(100, 40) == doctest::Approx(0.903).epsilon(1e-3));
}

TEST_CASE("attacks: hand-computed on two honest updates") {
  // mu = (2, 0), sd = (sqrt 2, 0)
  const Vectors honest = {{1, 0}, {3, 0}};
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
  const Vectors honest = {{1, 2, 0}, {-1, 0.5F, 0.25F}, {0.5F, -1, 1}, {2, 1, -1}};
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

TEST_CASE("attacks: long updates, looked at in pieces, give what all values at once would") {
  constexpr std::size_t kSize = 40'000;  // two full pieces and a partial one
  Vectors honest(5, std::vector<float>(kSize));
  for (std::size_t k = 0; k < honest.size(); ++k)
    for (std::size_t i = 0; i < kSize; ++i)
      honest[k][i] = static_cast<float>((i * 7 + k * 13) % 31) - 15 + static_cast<float>(k);
  const auto alie = result({.kind = AttackKind::kAlie, .strength = 1}, honest, 1, std::vector<float>(kSize));
  for (const std::size_t i : {std::size_t{0}, std::size_t{16'383}, std::size_t{16'384}, kSize - 1}) {
    double mean = 0;
    for (const auto& update : honest) mean += static_cast<double>(update[i]) / 5;
    double squares = 0;
    for (const auto& update : honest) squares += std::pow(static_cast<double>(update[i]) - mean, 2);
    CHECK(static_cast<double>(alie[i]) == doctest::Approx(mean - std::sqrt(squares / 4)).epsilon(1e-5));
  }
  const auto min_max = result({.kind = AttackKind::kMinMax}, honest, 1, std::vector<float>(kSize));
  double bound = 0;
  double reached = 0;
  for (const auto& a : honest) {
    reached = std::max(reached, distance(a, min_max));
    for (const auto& b : honest) bound = std::max(bound, distance(a, b));
  }
  CHECK(reached == doctest::Approx(bound).epsilon(1e-6));
}

TEST_CASE("attacks: an honest update that cannot be read is an error, not an attack") {
  for (const AttackKind kind : {AttackKind::kAlie, AttackKind::kIpm, AttackKind::kMinMax}) {
    std::vector<float> own = {1, 2};
    const auto done = attack({.kind = kind}, updates_of({{1, 2}, {1}}), 1, Rng(5), own);
    REQUIRE(!done);
    CHECK(done.error().message == "shorter than the others");
    CHECK(own == std::vector<float>{1, 2});
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
