// q-FedAvg against the paper's formulas, written as they stand there.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "tests/support/aggregation.h"

namespace fedge::aggregation {
namespace {

using Rows = std::vector<std::vector<float>>;
using Doubles = std::vector<double>;

std::vector<Update> reported(const Rows& rows, const Doubles& losses) {
  std::vector<Update> updates;
  for (std::uint32_t client = 0; client < rows.size(); ++client) {
    updates.push_back(test_update(client, rows[client], 1 + 10 * client));
    updates.back().loss = losses[client];
  }
  return updates;
}

Doubles qfedavg(const std::vector<Update>& updates, const std::string& options, double rate = 0.1) {
  Sequential sequential;
  AggregatorContext context = test_context(updates[0].coverage.count());
  context.local_rate = rate;
  const auto aggregator = make_aggregator("qfedavg", context, options);
  REQUIRE(aggregator->add(updates, sequential));
  return aggregate_of(*aggregator, updates[0].coverage.count());
}

// Algorithm 2: Delta w_k = L (w - w_k), Delta_k = F_k^q Delta w_k, h_k = q F_k^(q-1) ||Delta w_k||^2 + L
// F_k^q, w <- w - sum Delta_k / sum h_k.
Doubles algorithm_2(const Rows& rows, const Doubles& losses, double q, double lipschitz) {
  Doubles sum(rows[0].size());
  double h = 0;
  for (std::size_t k = 0; k < rows.size(); ++k) {
    double squares = 0;
    for (std::size_t i = 0; i < sum.size(); ++i) {
      const double moved = -lipschitz * static_cast<double>(rows[k][i]);
      sum[i] += std::pow(losses[k], q) * moved;
      squares += moved * moved;
    }
    h += q * std::pow(losses[k], q - 1) * squares + lipschitz * std::pow(losses[k], q);
  }
  for (double& value : sum) value = -value / h;
  return sum;
}

void check_step(const Doubles& actual, const Doubles& expected) {
  REQUIRE(actual.size() == expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i)
    CHECK(actual[i] == doctest::Approx(expected[i]).epsilon(1e-7));
}

const Rows kRows = {{0.5F, -0.25F, 1}, {-1, 0.125F, 0.5F}, {0.25F, 2, -0.75F}};
const Doubles kLosses = {0.3, 2.5, 1.1};

}  // namespace

TEST_CASE("qfedavg: the step is algorithm 2's, whatever q and L") {
  for (const double q : {0.001, 0.5, 1.0, 2.0, 5.0}) {
    CAPTURE(q);
    const std::string option = "q = " + std::to_string(q) + "\n";
    check_step(qfedavg(reported(kRows, kLosses), option, 0.1), algorithm_2(kRows, kLosses, q, 10));
    check_step(qfedavg(reported(kRows, kLosses), option + "lipschitz = 3\n", 0.1),
               algorithm_2(kRows, kLosses, q, 3));
  }
  // Two clients, by hand: F = 1 and 2, q = 1, L = 1, updates 1 and 2: (1 * 1 + 2 * 2) / (1 + 2 + 1 + 4).
  check_step(qfedavg(reported({{1}, {2}}, {1, 2}), "q = 1\nlipschitz = 1\n"), {5.0 / 8});
}

TEST_CASE("qfedavg: q = 0 is the unweighted mean, whatever the losses and samples") {
  Sequential sequential;
  const auto mean = make_aggregator("uniform_mean", test_context(3));
  const auto updates = reported(kRows, kLosses);
  REQUIRE(mean->add(updates, sequential));
  check_step(qfedavg(updates, "q = 0\n"), aggregate_of(*mean, 3));
}

TEST_CASE("qfedavg: a larger q follows the client with the largest loss") {
  const Rows opposed = {{1, 0}, {0, 1}};
  double before = 0;
  for (const char* q : {"q = 0\n", "q = 1\n", "q = 3\n", "q = 20\n"}) {
    const Doubles step = qfedavg(reported(opposed, {0.5, 2}), q);
    const double share = step[1] / (step[0] + step[1]);
    CHECK(share > before);
    before = share;
  }
  CHECK(before > 0.9999);
}

TEST_CASE(
    "qfedavg: losses of 0, below 0, huge and equal leave the step finite, and no larger than the updates") {
  for (const Doubles& losses : {Doubles{0, 0, 0}, Doubles{0, 1, 1e-300}, Doubles{1e300, 1e-300, 1},
                                Doubles{-5, 1, 2}, Doubles{1e308, 1e308, 1e308}})
    for (const char* q : {"q = 0.1\n", "q = 1\n", "q = 100\n"}) {
      CAPTURE(q);
      CAPTURE(losses);
      for (const double value : qfedavg(reported(kRows, losses), q)) {
        CHECK(std::isfinite(value));
        CHECK(std::abs(value) <= 2);
      }
    }
  for (const double value : qfedavg(reported(kRows, kLosses), "", 0)) CHECK(std::isfinite(value));
}

TEST_CASE("qfedavg: the order of arrival changes no bit, also of two updates of one client") {
  auto updates = reported(kRows, kLosses);
  for (int i = 1; i < 16; ++i) {
    updates.push_back(updates[1]);
    updates.back().loss = 0.37 * i;
  }
  const Doubles expected = qfedavg(updates, "");
  std::ranges::reverse(updates);
  CHECK(qfedavg(updates, "") == expected);
  std::swap(updates[0], updates[1]);
  CHECK(qfedavg(updates, "") == expected);
}

}  // namespace fedge::aggregation
