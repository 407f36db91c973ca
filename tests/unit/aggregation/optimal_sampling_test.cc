#include "aggregation/samplers/optimal_sampling.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "tests/support/sampling_reference.h"

namespace fedge::aggregation {
namespace {

using Doubles = std::vector<double>;

Doubles value(Result<Doubles> result) {
  const std::string error = result ? "" : result.error().message;
  CAPTURE(error);
  REQUIRE(result);
  return std::move(result).value();
}

void check_near(const Doubles& p, const Doubles& expected) {
  REQUIRE(p.size() == expected.size());
  for (std::size_t k = 0; k < p.size(); ++k) {
    CAPTURE(k);
    CHECK(p[k] == doctest::Approx(expected[k]).epsilon(1e-14));
  }
}

}  // namespace

TEST_CASE("optimal sampling: equal costs, worked out by hand") {
  // 8 takes 2 * 8 / 16 = 1 of the budget; the others share the remaining 1 in the ratio 4 : 3 : 1.
  const Doubles q = {3, 8, 4, 1};
  const Doubles expected = {3.0 / 8, 1, 4.0 / 8, 1.0 / 8};
  check_near(value(optimal_probabilities({q, {}, 2})), expected);
  check_near(classical_probabilities(q, 2), expected);
  check_near(value(approximate_probabilities(q, 2)), expected);
  check_near(value(paper_set_rule({q, {}, 2})), expected);
  // 9 (8/3 - 1) + 64 (1 - 1) + 16 (2 - 1) + 1 (8 - 1) = 15 + 0 + 16 + 7.
  CHECK(sampling_variance(q, expected) == doctest::Approx(38).epsilon(1e-14));
}

TEST_CASE("optimal sampling: a client that costs a quarter is drawn twice as often for the same norm") {
  // Without the cap, p = (q / sqrt(r)) / sum(sqrt(r) q) = (1 * 1, 1 * 2) / (1 + 1/2), at a cost of 2/3 * 1 +
  // 4/3 * 1/4 = 1. The cap cuts 4/3 to 1, which leaves 3/4 for the other client.
  check_near(value(optimal_probabilities({Doubles{1, 1}, Doubles{1, 0.25}, 1})), {0.75, 1});
  // At half the budget, no probability is cut.
  check_near(value(optimal_probabilities({Doubles{1, 1}, Doubles{1, 0.25}, 0.5})), {1.0 / 3, 2.0 / 3});
}

TEST_CASE("optimal sampling: the published set rule leaves a part of the budget unspent") {
  // Scores sqrt(r) q are 1 and 1/2. The set must take both, as the cheap one alone leaves no budget
  // (1 - 5/4 + 1/4 = 0). Then p = q / sqrt(r) / (3/2) is 2/3 and 4/3; the latter is cut to 1, and 1/12
  // of the budget remains.
  check_near(value(paper_set_rule({Doubles{1, 1}, Doubles{1, 0.25}, 1})), {2.0 / 3, 1});
}

TEST_CASE("optimal sampling: budgets that pay for all, and norms of 0") {
  const Doubles q = {1, 2, 3};
  const Doubles r = {0.5, 1, 0.25};
  for (const double budget : {1.75, 2.0, 1e9}) {
    CHECK(value(optimal_probabilities({q, r, budget})) == Doubles{1, 1, 1});
    CHECK(value(paper_set_rule({q, r, budget})) == Doubles{1, 1, 1});
  }
  CHECK(classical_probabilities(q, 3) == Doubles{1, 1, 1});
  CHECK(value(approximate_probabilities(q, 3)) == Doubles{1, 1, 1});
  check_near(value(optimal_probabilities({Doubles{0, 0, 0}, r, 0.7})), {0.4, 0.4, 0.4});
  check_near(classical_probabilities(Doubles{0, 0, 0, 0}, 1), {0.25, 0.25, 0.25, 0.25});
  CHECK(value(optimal_probabilities({{}, {}, 1})).empty());
}

TEST_CASE("optimal sampling: a client whose norm is 0 keeps a positive probability") {
  // The floor of a norm is 1e-8 of the largest norm: 1e-8 / (1 + 1e-8) of the budget of a half.
  const Doubles p = value(optimal_probabilities({Doubles{0, 5}, {}, 0.5}));
  check_near(p, {0.5e-8 / (1 + 1e-8), 0.5 / (1 + 1e-8)});
  check_near(classical_probabilities(Doubles{0, 5}, 0.5), p);
}

TEST_CASE("optimal sampling: a unit of the norms does not matter, however large or small") {
  const Doubles q = {3, 8, 4, 1};
  const Doubles r = {1, 0.2, 0.2, 1};
  const Doubles expected = value(optimal_probabilities({q, r, 0.9}));
  for (const double unit : {1e-300, 0x1p-40, 0x1p1000, std::numeric_limits<double>::max() / 8}) {
    Doubles scaled = q;
    for (double& norm : scaled) norm *= unit;
    check_near(value(optimal_probabilities({scaled, r, 0.9})), expected);
  }
}

TEST_CASE("optimal sampling: inputs that mean nothing are refused with the client's place") {
  const double nan = std::nan("");
  const double infinity = std::numeric_limits<double>::infinity();
  const auto error = [](const Doubles& q, const Doubles& r, double budget) {
    const auto result = optimal_probabilities({q, r, budget});
    REQUIRE_FALSE(result);
    CHECK_FALSE(paper_set_rule({q, r, budget}));
    return result.error().message;
  };
  CHECK(error({1, nan}, {}, 1).starts_with("norm 1 is nan"));
  CHECK(error({infinity, 1}, {}, 1).starts_with("norm 0 is inf"));
  CHECK(error({1, -1, 2}, {}, 1).starts_with("norm 1 is -1"));
  CHECK(error({1, 1}, {1, 0}, 1).starts_with("cost 1 is 0"));
  CHECK(error({1, 1}, {1.5, 1}, 1).starts_with("cost 0 is 1.5"));
  CHECK(error({1, 1}, {1, nan}, 1).starts_with("cost 1 is nan"));
  CHECK(error({1, 1}, {1}, 1).starts_with("there are 2 norms and 1 costs"));
  for (const double budget : {0.0, -1.0, nan, infinity}) {
    CHECK(error({1, 1}, {}, budget).starts_with("the sampling budget is"));
    CHECK_FALSE(approximate_probabilities(Doubles{1, 1}, budget));
  }
  CHECK_FALSE(approximate_probabilities(Doubles{1, -1}, 1));
}

TEST_CASE("optimal sampling: of equal clients none is preferred") {
  // 3 of 5 equal norms: 3/5 each. The same if equal norms lie at the edge of the certain ones.
  check_near(value(optimal_probabilities({Doubles{2, 2, 2, 2, 2}, {}, 3})), {0.6, 0.6, 0.6, 0.6, 0.6});
  check_near(value(optimal_probabilities({Doubles{9, 9, 1, 1}, {}, 2.5})), {1, 1, 0.25, 0.25});
  check_near(classical_probabilities(Doubles{9, 9, 1, 1}, 2.5), {1, 1, 0.25, 0.25});
}

}  // namespace fedge::aggregation
