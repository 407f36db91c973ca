#include "run/privacy/private_update.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace fedge::run {
namespace {

constexpr std::size_t kValues = 40'000;

privacy::LocalPrivacySpec spec_of(double norm, double multiplier) {
  privacy::LocalPrivacySpec spec{.clipping_norm = norm, .noise_multiplier = multiplier};
  spec.fraction_bits = local_fraction_bits(spec);
  return spec;
}

struct Machine {
  Secret root{Digest{7}};
  TaskId task{RoundNumber(3), TrackId()};
  std::vector<float> noised(std::vector<float> values, const privacy::LocalPrivacySpec& spec) const {
    const auto made = make_private(values, spec, {&root, task});
    REQUIRE_MESSAGE(made, made.error().message);
    return values;
  }
};

double squares(const std::vector<float>& values) {
  double sum = 0;
  for (const float value : values) sum += static_cast<double>(value) * static_cast<double>(value);
  return sum;
}

}  // namespace

TEST_CASE("private update: its noise is what its multiplier says, of twice the norm") {
  for (const double multiplier : {0.1, 1.0, 20.0}) {
    CAPTURE(multiplier);
    const auto spec = spec_of(0.5, multiplier);
    const auto noised = Machine().noised(std::vector<float>(kValues), spec);
    const double expected = multiplier * 2 * 0.5;
    // Five standard errors. The rounding of 40,000 values adds at most 20 multipliers in 2^18 to the
    // sensitivity.
    CHECK(squares(noised) / kValues / (expected * expected) ==
          doctest::Approx(1).epsilon(5 * std::sqrt(2.0 / kValues) + multiplier * 2e-4));
  }
}

TEST_CASE("private update: with next to no noise it is the update cut down to its norm") {
  std::vector<float> values(1000);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = std::sin(static_cast<float>(i));
  const double norm = std::sqrt(squares(values));
  for (const double largest : {norm / 8, norm * 8}) {
    const auto spec = spec_of(largest, 1e-7);
    const auto noised = Machine().noised(values, spec);
    const double factor = std::min(1.0, largest / norm);
    for (std::size_t i = 0; i < values.size(); ++i)
      CHECK(static_cast<double>(noised[i]) ==
            doctest::Approx(static_cast<double>(values[i]) * factor).epsilon(1e-4));
  }
}

TEST_CASE("private update: what leaves the client are whole units of the grid") {
  const auto spec = spec_of(1, 0.5);
  const auto noised = Machine().noised(std::vector<float>(1000, 0.01F), spec);
  for (const float value : noised) {
    const double units = std::ldexp(static_cast<double>(value), spec.fraction_bits);
    CHECK(units == std::nearbyint(units));
  }
}

TEST_CASE("private update: the same values have the same noise in one task, and another in another") {
  const std::vector<float> values(100, 0.01F);
  const auto spec = spec_of(1, 1);
  const Machine machine;
  const auto first = machine.noised(values, spec);
  CHECK(machine.noised(values, spec) == first);
  Machine later;
  later.task.round = RoundNumber(4);
  CHECK(later.noised(values, spec) != first);
  Machine other;
  other.root = Secret(Digest{8});
  CHECK(other.noised(values, spec) != first);
  // Otherwise the difference of two updates would contain no noise.
  auto changed = values;
  changed[50] = 0.02F;
  const auto second = machine.noised(changed, spec);
  std::size_t alike = 0;
  for (std::size_t i = 0; i < values.size(); ++i) alike += first[i] == second[i] ? 1U : 0U;
  CHECK(alike < 5);
}

TEST_CASE("private update: what is not finite is refused, and so is more noise than can be drawn") {
  const auto spec = spec_of(1, 1);
  const Secret root{Digest{7}};
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    std::vector<float> values(10);
    values[4] = bad;
    const auto made = make_private(values, spec, {&root, {}});
    REQUIRE_FALSE(made);
    CHECK(made.error().code == ErrorCode::kInvalid);
  }
  auto loud = spec;
  loud.noise_multiplier = 1e9;
  std::vector<float> values(10);
  const auto made = make_private(values, loud, {&root, {}});
  REQUIRE_FALSE(made);
  CHECK(made.error().code == ErrorCode::kUnsupported);
}

}  // namespace fedge::run
