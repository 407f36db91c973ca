// The robust rules on random updates: they equal their definitions, computed slowly, and have the invariants
// that their papers state.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <string>

#include "core/platform/thread_pool.h"
#include "core/rng.h"
#include "tests/support/aggregation.h"
#include "tests/unit/aggregation/robust_reference.h"

namespace fedge::aggregation {
namespace {

using reference::Matrix;
using reference::Vector;

std::vector<Update> updates_of(const Matrix& rows, const Vector& weights = {}, bool in_pieces = false) {
  std::vector<Update> updates;
  for (std::uint32_t client = 0; client < rows.size(); ++client)
    updates.push_back(test_update(
        client, rows[client], weights.empty() ? 1 : static_cast<std::uint64_t>(weights[client]), in_pieces));
  return updates;
}

Vector result(const std::string& rule, const Matrix& rows, const std::string& options = "",
              const Vector& weights = {}) {
  Sequential sequential;
  const auto aggregator = make_aggregator(rule, test_context(rows[0].size()), options);
  REQUIRE(aggregator->add(updates_of(rows, weights), sequential));
  return aggregate_of(*aggregator, rows[0].size());
}

bool close(const Vector& a, const Vector& b, double tolerance) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i)
    if (!(std::abs(a[i] - b[i]) <= tolerance)) return false;
  return true;
}

Vector random_weights(std::size_t count) {
  Vector weights;
  for (std::size_t i = 0; i < count; ++i) weights.push_back(static_cast<double>(1 + i * i % 17));
  return weights;
}

// Calls test(rows, n) with random and with tied rows, from few to many updates.
template <class Test>
void for_random_rows(std::size_t fewest, Test test) {
  for (const std::size_t rows : {1U, 2U, 3U, 4U, 5U, 7U, 8U, 11U, 16U, 23U, 40U})
    for (const std::size_t columns : {1U, 5U, 83U})
      for (const bool few : {false, true})
        if (rows >= fewest) {
          CAPTURE(rows);
          CAPTURE(columns);
          CAPTURE(few);
          test(reference::random_rows(rows, columns, static_cast<std::uint32_t>(97 * rows + columns), few),
               rows);
        }
}

std::string byzantine(std::size_t f) { return "byzantine = " + std::to_string(f) + "\n"; }

// Every rule with options that tolerate two hostile updates of twelve.
const std::map<std::string, std::string> kAll = {
    {"median", ""},
    {"trimmed_mean", "trim = 2"},
    {"krum", "byzantine = 2"},
    {"multi_krum", "byzantine = 2"},
    {"bulyan", "byzantine = 2"},
    {"geometric_median", "iterations = 50"},
    {"centered_clip", "radius = 1.0\niterations = 3"},
    {"clipped_mean", ""},
};

}  // namespace

TEST_CASE("median and trimmed mean: those of each sorted column, for every number of updates") {
  for_random_rows(1, [](const Matrix& rows, std::size_t n) {
    CHECK(result("median", rows) == reference::median(rows));
    CHECK(result("trimmed_mean", rows) == reference::trimmed_mean(rows, n / 5));
    for (std::size_t trim = 0; 2 * trim < n; ++trim)
      CHECK(result("trimmed_mean", rows, "trim = " + std::to_string(trim)) ==
            reference::trimmed_mean(rows, trim));
  });
}

TEST_CASE("trimmed mean: without trimming it is the mean") {
  for_random_rows(1, [](const Matrix& rows, std::size_t n) {
    CHECK(close(result("trimmed_mean", rows, "trim = 0"),
                reference::mean_of_rows(rows, reference::numbers(n)), 1e-15));
  });
}

TEST_CASE("krum and multi-krum: the winners by definition, for every number of hostile updates") {
  for_random_rows(3, [](const Matrix& rows, std::size_t n) {
    for (std::size_t f = 0; 2 * f + 3 <= n; f += 1 + f / 3) {
      CAPTURE(f);
      CHECK(result("krum", rows, byzantine(f)) == reference::multi_krum(rows, f, 1));
      for (const std::size_t select : {std::size_t{1}, std::size_t{2}, n - f, n})
        CHECK(close(result("multi_krum", rows, byzantine(f) + "select = " + std::to_string(select)),
                    reference::multi_krum(rows, f, select), 1e-15));
    }
  });
}

TEST_CASE("bulyan: by definition, for every number of hostile updates") {
  for_random_rows(3, [](const Matrix& rows, std::size_t n) {
    for (std::size_t f = 0; 4 * f + 3 <= n; ++f) {
      CAPTURE(f);
      CHECK(close(result("bulyan", rows, byzantine(f)), reference::bulyan(rows, f), 1e-14));
    }
  });
}

TEST_CASE("geometric median: the iterations by definition, weighted by samples") {
  for_random_rows(1, [](const Matrix& rows, std::size_t n) {
    const Vector weights = random_weights(n);
    for (const int iterations : {1, 3, 10}) {
      const std::string options = "tolerance = 0.0\niterations = " + std::to_string(iterations);
      CHECK(close(result("geometric_median", rows, options, weights),
                  reference::geometric_median(rows, weights, iterations, 1e-6), 1e-9));
    }
  });
}

TEST_CASE("centered clip: by definition over three rounds, and no round moves further than it may") {
  for_random_rows(1, [](const Matrix& rows, std::size_t) {
    for (const int iterations : {1, 2, 5}) {
      Sequential sequential;
      const auto aggregator = make_aggregator("centered_clip", test_context(rows[0].size()),
                                              "radius = 0.25\niterations = " + std::to_string(iterations));
      Vector expected(rows[0].size(), 0.0);
      for (int round = 0; round < 3; ++round) {
        REQUIRE(aggregator->add(updates_of(rows), sequential));
        const Vector moved = aggregate_of(*aggregator, rows[0].size());
        double squares = 0;
        for (std::size_t c = 0; c < moved.size(); ++c)
          squares += (moved[c] - expected[c]) * (moved[c] - expected[c]);
        CHECK(std::sqrt(squares) <= 0.25 * iterations * (1 + 1e-9));
        expected = reference::centered_clip(rows, expected, 0.25, iterations);
        CHECK(close(moved, expected, 1e-12));
        aggregator->clear();
      }
    }
  });
}

TEST_CASE("centered clip: with a radius that clips nothing it is the mean, in whatever round") {
  for_random_rows(1, [](const Matrix& rows, std::size_t n) {
    Sequential sequential;
    const auto aggregator = make_aggregator("centered_clip", test_context(rows[0].size()), "radius = 1e9");
    for (int round = 0; round < 2; ++round) {
      REQUIRE(aggregator->add(updates_of(rows), sequential));
      CHECK(close(aggregate_of(*aggregator, rows[0].size()),
                  reference::mean_of_rows(rows, reference::numbers(n)), 1e-14));
      aggregator->clear();
    }
  });
}

TEST_CASE("every rule: of equal updates it gives that update") {
  for (const auto& [rule, options] : kAll)
    for (const std::size_t n : {11U, 12U, 30U}) {
      CAPTURE(rule);
      const Matrix one = reference::random_rows(1, 40, 3, false);
      // One step of centered clip reaches any point within its radius.
      const Vector expected(one[0].begin(), one[0].end());
      const std::string wide = rule == "centered_clip" ? "radius = 100.0" : options;
      CHECK(close(result(rule, Matrix(n, one[0]), wide), expected, 1e-12));
    }
}

TEST_CASE("every rule: zero updates give zero") {
  for (const auto& [rule, options] : kAll)
    CHECK(result(rule, Matrix(12, std::vector<float>(9, 0.0F)), options) == Vector(9, 0.0));
}

TEST_CASE("every rule: which client sent which update does not matter") {
  for (auto [rule, options] : kAll) {
    CAPTURE(rule);
    // With fewer hostile updates, bulyan's last choices use only the nearest neighbour: the client's number
    // decides between two that are nearest to each other.
    if (rule == "bulyan") options = byzantine(3);
    Matrix rows = reference::random_rows(15, 30, 5, false);
    const Vector before = result(rule, rows, options);
    std::mt19937 engine(8);
    for (int turn = 0; turn < 5; ++turn) {
      std::shuffle(rows.begin(), rows.end(), engine);
      CHECK(close(result(rule, rows, options), before, 1e-12));
    }
  }
}

TEST_CASE("means, median, trimmed mean, Krum, Bulyan and geometric median move with the updates") {
  const Matrix rows = reference::random_rows(12, 30, 6, true);
  Matrix moved = rows;
  // Multiples of 1/8: sums and differences are exact, so that only the rule can change a result.
  for (auto& row : moved)
    for (std::size_t c = 0; c < row.size(); ++c) row[c] += static_cast<float>(c) / 8.0F - 2.0F;
  std::map<std::string, std::string> rules = kAll;
  rules.erase("centered_clip");  // depends on the position of 0
  rules.erase("clipped_mean");   // depends on it as well
  rules["mean"] = "";
  rules["uniform_mean"] = "";
  for (const auto& [rule, options] : rules) {
    CAPTURE(rule);
    Vector expected = result(rule, rows, options);
    for (std::size_t c = 0; c < expected.size(); ++c) expected[c] += static_cast<double>(c) / 8 - 2;
    CHECK(close(result(rule, moved, options), expected, 1e-12));
  }
}

TEST_CASE("Krum, multi-Krum and geometric median turn with the updates, the median does not") {
  // Multiples of 5/8, rotated by the angle of the 3-4-5 triangle, stay exact.
  Matrix rows = reference::random_rows(12, 2, 21, true);
  Matrix turned = rows;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    for (float& value : rows[i]) value *= 5;
    rows[i][0] += static_cast<float>(5 * (i % 4));  // distinguishes the rows
    rows[i][1] += static_cast<float>(5 * (i / 4));
    turned[i] = {(3 * rows[i][0] - 4 * rows[i][1]) / 5, (4 * rows[i][0] + 3 * rows[i][1]) / 5};
  }
  const auto turn = [](const Vector& v) {
    return Vector{(3 * v[0] - 4 * v[1]) / 5, (4 * v[0] + 3 * v[1]) / 5};
  };
  for (const char* rule : {"krum", "multi_krum", "geometric_median"}) {
    CAPTURE(rule);
    CHECK(close(result(rule, turned, kAll.at(rule)), turn(result(rule, rows, kAll.at(rule))), 1e-12));
  }
  CHECK_FALSE(close(result("median", turned), turn(result("median", rows)), 0.01));
}

TEST_CASE("f updates with one enormous value leave median, trimmed mean and Bulyan among the honest") {
  for (const std::size_t f : {1U, 2U, 3U})
    for (const float enormous : {256.0F, 1e9F, 1e30F, -1e30F}) {
      CAPTURE(f);
      CAPTURE(enormous);
      const std::size_t n = 4 * f + 3;
      Matrix rows = reference::random_rows(n, 20, static_cast<std::uint32_t>(f), false);
      const Matrix honest(rows.begin() + static_cast<std::ptrdiff_t>(f), rows.end());
      for (std::size_t hostile = 0; hostile < f; ++hostile) rows[hostile][7] = enormous;
      for (const auto& [rule, options] : std::map<std::string, std::string>{
               {"median", ""}, {"trimmed_mean", "trim = " + std::to_string(f)}, {"bulyan", byzantine(f)}}) {
        CAPTURE(rule);
        const Vector out = result(rule, rows, options);
        for (std::size_t c = 0; c < 20; ++c) {
          const Vector values = reference::column(c == 7 ? honest : rows, c);
          CHECK(out[c] >= *std::min_element(values.begin(), values.end()));
          CHECK(out[c] <= *std::max_element(values.begin(), values.end()));
        }
      }
      const Vector krum = result("krum", rows, byzantine(f));
      CHECK(std::any_of(honest.begin(), honest.end(), [&](const std::vector<float>& row) {
        return krum == Vector(row.begin(), row.end());
      }));
      // The mean, for comparison, follows the hostile updates.
      CHECK(std::abs(result("trimmed_mean", rows, "trim = 0")[7]) > 5.0);
    }
}

TEST_CASE("geometric median: on a line it is the weighted median") {
  // 61 of 120 samples are at most 3, 66 at least 3.
  const Matrix rows = {{-40}, {1}, {2}, {3}, {4}, {200}};
  const Vector weights = {20, 20, 14, 7, 9, 50};
  const Vector z = result("geometric_median", rows, "iterations = 3000\ntolerance = 0.0", weights);
  CHECK(z[0] == doctest::Approx(3.0).epsilon(1e-4));
  const Vector even = result("geometric_median", rows, "iterations = 3000\ntolerance = 0.0");
  CHECK(even[0] >= 2.0);
  CHECK(even[0] <= 3.0);
}

TEST_CASE("geometric median: no iteration makes the sum of distances larger") {
  for_random_rows(2, [](const Matrix& rows, std::size_t n) {
    const Vector weights = random_weights(n);
    double last = reference::objective(rows, weights, reference::weighted_mean(rows, weights));
    for (int iterations = 1; iterations <= 12; ++iterations) {
      const std::string options = "tolerance = 0.0\niterations = " + std::to_string(iterations);
      const double now =
          reference::objective(rows, weights, result("geometric_median", rows, options, weights));
      CHECK(now <= last * (1 + 1e-12) + 1e-5);  // cost of the smoothing: nu for each update
      last = now;
    }
  });
}

TEST_CASE("every rule: the same bits for every number of threads, memory, source and piece") {
  constexpr std::size_t kSize = 70'003;  // several blocks of 1 MiB, quanta and tasks, with partial ones at
                                         // the end
  const Matrix rows = reference::random_rows(31, kSize, 4, false);
  const Vector weights = random_weights(31);
  for (const auto& [rule, options] : kAll) {
    CAPTURE(rule);
    Vector expected;
    for (const bool in_pieces : {false, true})
      for (const std::size_t threads : {1U, 2U})
        for (const char* memory : {"", "\nmemory_mb = 1"}) {
          ThreadPool pool(threads);
          const auto aggregator = make_aggregator(rule, test_context(kSize), options + memory);
          auto updates = updates_of(rows, weights, in_pieces);
          if (threads == 2) std::reverse(updates.begin(), updates.end());
          REQUIRE(aggregator->add(std::span(updates).first(5), pool));
          REQUIRE(aggregator->add(std::span(updates).subspan(5), pool));
          REQUIRE(aggregator->prepare(pool));
          Vector out(kSize);
          const std::size_t cut = in_pieces ? 12'345 : kSize;
          REQUIRE(aggregator->read(0, std::span(out).first(cut), pool));
          REQUIRE(aggregator->read(cut, std::span(out).subspan(cut), pool));
          if (expected.empty()) expected = out;
          CHECK(out == expected);
        }
  }
}

TEST_CASE("bucketing: every rule then works on the means of the permuted updates") {
  const Matrix rows = reference::random_rows(24, 10, 12, true);
  std::vector<std::uint32_t> order(24);
  std::iota(order.begin(), order.end(), 0U);
  Rng(0).fork("aggregate", 1).shuffle(std::span(order));
  Matrix buckets;
  for (std::size_t b = 0; b < 12; ++b) {
    buckets.emplace_back(10);
    for (std::size_t c = 0; c < 10; ++c)
      buckets[b][c] = (rows[order[2 * b]][c] + rows[order[2 * b + 1]][c]) / 2;  // exact: multiples of 1/16
  }
  for (const auto& [rule, options] : kAll) {
    if (rule == "clipped_mean") continue;  // it clips before it averages
    CAPTURE(rule);
    CHECK(close(result(rule, rows, options + "\nbucket_size = 2"), result(rule, buckets, options), 1e-12));
  }
}

}  // namespace fedge::aggregation
