#include "aggregation/planners/fedplt.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "tests/support/aggregation.h"
#include "tests/unit/aggregation/planning.h"

namespace fedge::aggregation {
namespace {

using planning::covered;
using planning::plan;
using planning::planner;

}  // namespace

TEST_CASE("fedplt: five clients of a fifth, worked out by hand") {
  // L = 5, D = 4. Client 0 leaves out sub-layers 0 1 2 3, client 1 leaves out 4 0 1 2, client 2 leaves out 3
  // 4 0 1 ...
  const auto fifth = planner({"fedplt", "shares = [0.2]\nfractions = [1]\n", planning::small_mlp(), 5});
  // dense1: two rows of 4 a sub-layer, biases from 40. dense2: one row of 10, biases from 100. dense3 whole.
  CHECK(plan(*fifth, 0) == Coverage::of({{32, 40}, {48, 50}, {90, 100}, {104, 105}, {105, 123}}));
  CHECK(plan(*fifth, 1) == Coverage::of({{24, 32}, {46, 48}, {80, 90}, {103, 104}, {105, 123}}));
  CHECK(plan(*fifth, 4) == Coverage::of({{0, 8}, {40, 42}, {50, 60}, {100, 101}, {105, 123}}));
  CHECK(fifth->share(ClientId(3)) == (10.0 + 11.0 + 18.0) / 123.0);
}

TEST_CASE("fedplt: five clients of a fifth train each sub-layer exactly once") {
  const auto layout = planning::chain({{10, 4}, {5, 10}, {15, 5}});
  const auto fifth = planner({"fedplt", "shares = [0.2]\nfractions = [1]\nsplit_output = true\n", layout, 5});
  std::vector<int> trainers(layout->size(), 0);
  for (std::uint32_t client = 0; client < 5; ++client) {
    const Coverage coverage = plan(*fifth, client);
    for (std::size_t i = 0; i < layout->size(); ++i) trainers[i] += coverage.contains(i) ? 1 : 0;
  }
  CHECK(std::all_of(trainers.begin(), trainers.end(), [](int count) { return count == 1; }));
}

TEST_CASE("fedplt: clients that declare what they can train are placed one after the other, evenly") {
  const auto layout = planning::small_mlp();
  const auto made = planner({"fedplt", "capability = \"declared\"\nshares = [0.2, 0.6]\n", layout, 12});
  // A capability of 0.9 permits three fifths of the model; 0.3 permits one fifth.
  for (std::uint32_t client = 0; client < 12; ++client)
    made->admit(ClientId(client), client % 4 == 0 ? 0.9 : 0.3);
  std::vector<int> trainers(5, 0);  // of each row of dense2; one row is one sub-layer
  for (std::uint32_t client = 0; client < 12; ++client) {
    CHECK(made->share(ClientId(client)) == (client % 4 == 0 ? 30 + 33 + 18 : 10 + 11 + 18) / 123.0);
    const Coverage coverage = plan(*made, client);
    for (std::size_t row = 0; row < 5; ++row) trainers[row] += coverage.contains(50 + 10 * row) ? 1 : 0;
  }
  // 3 * 3 + 9 * 1 = 18 sub-layers to train, distributed over 5.
  CHECK(*std::max_element(trainers.begin(), trainers.end()) == 4);
  CHECK(*std::min_element(trainers.begin(), trainers.end()) == 3);
  // Declaring the same capability again changes nothing; a lower capability shrinks the part.
  const Coverage before = plan(*made, 4);
  made->admit(ClientId(4), 0.9);
  CHECK(plan(*made, 4) == before);
  made->admit(ClientId(4), 0.2);
  CHECK(plan(*made, 4).count() == 10 + 11 + 18);
}

TEST_CASE("fedplt: a client trains the same part in every round") {
  const auto made = planner({"fedplt", "", planning::small_mlp(), 10});
  for (std::uint32_t client = 0; client < 10; ++client)
    for (std::uint32_t round = 2; round < 6; ++round)
      CHECK(plan(*made, client, round) == plan(*made, client, 1));
}

TEST_CASE("fedplt: with rotate, a part moves by one sub-layer a round and stays as large") {
  const std::string options = "shares = [0.2]\nfractions = [1]\n";
  const auto fixed = planner({"fedplt", options, planning::small_mlp(), 5});
  const auto rotating = planner({"fedplt", options + "rotate = true\n", planning::small_mlp(), 5});
  // Client 1 of the first test trains sub-layer 3: in round 1 it trains 4, in round 2 it begins again at 0.
  CHECK(plan(*rotating, 1, 1) == Coverage::of({{32, 40}, {48, 50}, {90, 100}, {104, 105}, {105, 123}}));
  CHECK(plan(*rotating, 1, 2) == Coverage::of({{0, 8}, {40, 42}, {50, 60}, {100, 101}, {105, 123}}));
  for (std::uint32_t client = 0; client < 5; ++client) {
    CHECK(rotating->share(ClientId(client)) == fixed->share(ClientId(client)));
    CHECK(plan(*rotating, client, 5) == plan(*fixed, client, 5));
    for (std::uint32_t round = 1; round <= 5; ++round)
      CHECK(plan(*rotating, client, round).count() == plan(*fixed, client, round).count());
  }
}

TEST_CASE("fedplt: the paper's mix trains 28 % of the parameters on average") {
  // 784-500-250-125-10, all multiples of 5: 10 % of the clients at 1, 90 % at exactly 0.2.
  const auto layout = planning::chain({{500, 784}, {250, 500}, {125, 250}, {10, 125}});
  const auto made = planner({"fedplt", "split_output = true\n", layout, 100});
  double sum = 0;
  for (std::uint32_t client = 0; client < 100; ++client) sum += made->share(ClientId(client));
  CHECK(sum / 100 == doctest::Approx(0.28).epsilon(1e-12));
  // With the last layer whole, all clients train 1,260 of 550,385 parameters, and the shares grow slightly.
  const auto whole = planner({"fedplt", "", layout, 100});
  double more = 0;
  for (std::uint32_t client = 0; client < 100; ++client) more += whole->share(ClientId(client));
  REQUIRE(layout->size() == 550'385);
  CHECK(more / 100 == doctest::Approx(0.28 + 0.72 * 1260.0 / 550385.0).epsilon(1e-12));
}

TEST_CASE("fedplt: sub-layers are counted for the levels that a client has") {
  // 0.3 and 0.5 give ten sub-layers (tenths and halves). A level without clients does not count.
  const auto layout = planning::chain({{10, 4}, {3, 10}});
  const auto made = planner({"fedplt", "shares = [0.3, 0.5]\nfractions = [0.5, 0.5]\n", layout, 2});
  std::multiset<double> shares = {made->share(ClientId(0)), made->share(ClientId(1))};
  CHECK(shares == std::multiset<double>{(15.0 + 33.0) / 83.0, (25.0 + 33.0) / 83.0});
  const std::string unused = "shares = [0.5, 0.142]\nfractions = [1, 0]\n";
  CHECK(planning::try_planner({"fedplt", unused, layout, 2}));
}

TEST_CASE("fedplt: a width that cannot be cut is refused with the layer, its width and the pieces") {
  const auto layout = planning::chain({{10, 4}, {128, 10}, {10, 128}});
  CHECK(planning::error_of({"fedplt", "", layout, 10}) ==
        "layer dense2 has 128 units, which cannot be divided into 5 equal sub-layers (the common denominator "
        "of the shares); make the number of units a multiple of 5");
  const auto output = planning::chain({{10, 4}, {7, 10}});
  CHECK(planning::try_planner({"fedplt", "", output, 10}));
  CHECK(planning::error_of({"fedplt", "split_output = true\n", output, 10})
            .starts_with("layer dense2 has 7 units"));
}

TEST_CASE("fedplt: shares without a small common denominator are refused") {
  CHECK(planning::error_of({"fedplt", "shares = [1, 0.3333]\n", planning::small_mlp(), 10}) ==
        "run.toml:1: planner.shares: 0.3333 is not a fraction between 0 and 1 with a denominator of at most "
        "1000");
  // The primes 997, 991 and 983 have a common multiple of 971 million.
  const std::string primes =
      "shares = [0.0010030090270812437, 0.0010090817356205853, 0.001017293997965412]\n"
      "fractions = [0.4, 0.3, 0.3]\n";
  CHECK(planning::error_of({"fedplt", primes, planning::small_mlp(), 10})
            .starts_with("the values of shares have no common denominator up to 1048576"));
}

TEST_CASE("fedplt: what was trained without effect counts in the mean of those who trained it") {
  // 60 %: three clients train each sub-layer. Client 1's units are dead: it sends zeros.
  const auto layout = planning::small_mlp();
  const auto made = planner({"fedplt", "shares = [0.6]\nfractions = [1]\n", layout, 5});
  AggregatorContext context = test_context(1);
  context.layout = layout;
  const auto aggregator = make_aggregator("mean", context);
  Sequential sequential;
  std::vector<double> sums(layout->size(), 0.0);
  std::vector<double> weights(layout->size(), 0.0);
  std::size_t of_dead = 0;
  for (std::uint32_t client = 0; client < 5; ++client) {
    const Coverage mask = plan(*made, client);
    const float value = client == 1 ? 0.0F : 0.25F * static_cast<float>(1 + client);
    Update update = test_update(client, std::vector<float>(mask.count(), value), 10 + client);
    update.coverage = mask;
    REQUIRE(aggregator->add({&update, 1}, sequential));
    for (std::size_t i = 0; i < layout->size(); ++i) {
      if (!mask.contains(i)) continue;
      sums[i] += (10.0 + client) * static_cast<double>(value);
      weights[i] += 10.0 + client;
      if (client == 1) ++of_dead;
    }
  }
  CHECK(of_dead > layout->size() / 2);
  const std::vector<double> mean = aggregate_of(*aggregator, layout->size());
  for (std::size_t i = 0; i < layout->size(); ++i)
    CHECK(mean[i] == doctest::Approx(sums[i] / weights[i]).epsilon(1e-9));
  // All clients train parameter 105 of the output layer: (10 * 1 + 12 * 3 + 13 * 4 + 14 * 5) / 4 / 60.
  CHECK(mean[105] == doctest::Approx(0.7).epsilon(1e-9));
}

TEST_CASE("random mask: as many rows of each layer as fedplt, other rows in every round") {
  const auto layout = planning::small_mlp();
  const std::string options = "shares = [0.2]\nfractions = [1]\n";
  const auto fixed = planner({"fedplt", options, layout, 5});
  const auto random = planner({"random_mask", options, layout, 5});
  std::set<std::vector<std::size_t>> drawn;
  for (std::uint32_t round = 1; round <= 50; ++round)
    for (std::uint32_t client = 0; client < 5; ++client) {
      const Coverage coverage = plan(*random, client, round);
      for (const TensorInfo& tensor : layout->tensors()) {
        // The mask holds whole rows, as many as fedplt's; a unit's bias goes with its row.
        auto counts = covered(tensor, coverage);
        const auto bias = covered(layout->tensors()[2 * tensor.layer + 1], coverage);
        const std::size_t row = tensor.size / counts.size();
        for (std::size_t unit = 0; unit < counts.size(); ++unit) REQUIRE(counts[unit] == bias[unit] * row);
        auto expected = covered(tensor, plan(*fixed, client, round));
        if (tensor.name == "dense1.weight") drawn.insert(counts);
        std::sort(counts.begin(), counts.end());
        std::sort(expected.begin(), expected.end());
        REQUIRE(counts == expected);
      }
    }
  CHECK(drawn.size() > 40);  // of the 45 pairs of ten rows, over 250 draws
}

TEST_CASE("random mask: every row is equally likely") {
  // 2 of 10 rows in each of 5,000 rounds: 1,000 draws for each row; chi-square, 9 degrees of freedom: 27.9 at
  // p = 0.001. Draws without replacement vary less, so that the bound is conservative.
  const auto layout = planning::small_mlp();
  const auto random = planner({"random_mask", "shares = [0.2]\nfractions = [1]\n", layout, 1});
  std::vector<double> seen(10, 0.0);
  for (std::uint32_t round = 1; round <= 5000; ++round) {
    const auto counts = covered(layout->tensors()[1], plan(*random, 0, round));
    for (std::size_t unit = 0; unit < 10; ++unit) seen[unit] += static_cast<double>(counts[unit]);
  }
  double chi_square = 0;
  for (const double count : seen) chi_square += (count - 1000) * (count - 1000) / 1000;
  CHECK(chi_square < 27.9);
}

TEST_CASE("random mask: rows that could scatter beyond a coverage's ranges are refused") {
  // Half of 70,000 rows: up to 35,000 ranges each for the weight and the bias.
  const auto wide = planning::chain({{70'000, 2}, {2, 70'000}});
  const std::string half = "shares = [0.5]\nfractions = [1]\n";
  CHECK(planning::error_of({"random_mask", half, wide, 1})
            .starts_with("the part of a client would have up to 70002 ranges"));
  CHECK(planning::try_planner({"random_mask", "shares = [0.4]\nfractions = [1]\n", wide, 1}));
  CHECK(planning::try_planner({"fedplt", half, wide, 1}));
}

}  // namespace fedge::aggregation
