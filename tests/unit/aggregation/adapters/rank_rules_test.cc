// Tests the exact statements of docs/algorithms/prelort.md about PreLort's segments, and the rules it is
// compared with, on two small matrices. Factors are small integers or halves, so that sums are exact.
#include <doctest/doctest.h>

#include <Eigen/Dense>
#include <cmath>
#include <vector>

#include "aggregation/planners/rank_prefix.h"
#include "tests/support/aggregation.h"
#include "tests/unit/aggregation/planning.h"

namespace fedge::aggregation {
namespace {

using Dense = Eigen::MatrixXd;

constexpr std::size_t kRank = 4;

// Frozen W1 [3, 2] and W2 [2, 3], then adapters of rank 4: a row is a1 (2), a2 (3), b1 (3), b2 (2).
const std::shared_ptr<const AdapterLayout>& adapters() {
  static const auto kShape = std::make_shared<const AdapterLayout>(
      AdapterLayout{.offset = 12,
                    .rank = kRank,
                    .row = 10,
                    .b_begin = 5,
                    .scale = 2,
                    .matrices = {{.name = "w1", .weight = 0, .in = 2, .out = 3, .a = 0, .b = 5},
                                 {.name = "w2", .weight = 6, .in = 3, .out = 2, .a = 2, .b = 8}}});
  return kShape;
}

AggregatorContext context() {
  auto layout = std::make_shared<ParameterLayout>();
  layout->add("w1", {3, 2}, {.trainable = false}).add("w2", {2, 3}, {.trainable = false});
  layout->add(AdapterLayout::kTensor, {kRank, 10}, {.order = TensorOrder::kRankMajor});
  return {.layout = std::move(layout), .max_updates = 100, .adapters = adapters(), .seed = 9};
}

float half(Rng& rng) { return static_cast<float>(rng.below(17)) / 2.0F - 4.0F; }

std::vector<float> model_of(std::uint64_t seed) {
  Rng rng(seed);
  std::vector<float> model(12 + kRank * 10);
  for (float& value : model) value = half(rng);
  return model;
}

// Returns a client's update of its first ranks.
Update update_of(std::uint32_t client, std::size_t ranks, std::uint64_t weight) {
  Rng rng(100 + client);
  std::vector<float> values(ranks * 10);
  for (float& value : values) value = half(rng);
  Update update = test_update(client, std::move(values), weight);
  update.coverage = Coverage::of({adapters()->prefix(ranks)});
  return update;
}

std::vector<float> values_of(const Update& update) {
  std::vector<float> values(update.coverage.count());
  REQUIRE(update.values->read(0, values));
  return values;
}

// Returns the model after one round of this rule.
std::vector<float> round_of(const std::string& rule, std::vector<float> model, std::vector<Update> updates) {
  Sequential sequential;
  const auto aggregator = make_aggregator(rule, context());
  const TestValues before(model, true);
  aggregator->see_model(before);
  REQUIRE(aggregator->add(updates, sequential));
  REQUIRE(aggregator->prepare(sequential));
  const auto optimizer = make_optimizer("sgd", 0);
  REQUIRE(step_model(*aggregator, *optimizer, 0, model, sequential));
  return model;
}

// Returns a client's factors after training: the model's first ranks plus its update.
std::vector<double> factors(const std::vector<float>& model, const Update& update) {
  std::vector<double> rows;
  const std::vector<float> values = values_of(update);
  for (std::size_t i = 0; i < values.size(); ++i)
    rows.push_back(static_cast<double>(model[12 + i]) + static_cast<double>(values[i]));
  return rows;
}

// Returns the product B A of a matrix from rows of factors.
Dense product(const std::vector<double>& rows, const AdaptedMatrix& m) {
  Dense sum = Dense::Zero(static_cast<Eigen::Index>(m.out), static_cast<Eigen::Index>(m.in));
  for (std::size_t j = 0; j < rows.size() / 10; ++j)
    for (std::size_t o = 0; o < m.out; ++o)
      for (std::size_t i = 0; i < m.in; ++i)
        sum(static_cast<Eigen::Index>(o), static_cast<Eigen::Index>(i)) +=
            rows[j * 10 + m.b + o] * rows[j * 10 + m.a + i];
  return sum;
}

std::vector<double> adapters_of(const std::vector<float>& model) { return {model.begin() + 12, model.end()}; }

}  // namespace

TEST_CASE("ranks: with equal ranks segments are FedIT's mean of factors, not the mean of products") {
  const std::vector<float> model = model_of(1);
  const std::vector<Update> updates = {update_of(0, kRank, 3), update_of(1, kRank, 5)};
  const std::vector<float> after = round_of("mean", model, updates);
  Dense products = Dense::Zero(3, 2);
  for (const Update& update : updates)
    products += static_cast<double>(update.weight.value()) / 8 *
                product(factors(model, update), adapters()->matrices[0]);
  for (std::size_t i = 12; i < model.size(); ++i) {
    const double mean = (3.0 * static_cast<double>(values_of(updates[0])[i - 12]) +
                         5.0 * static_cast<double>(values_of(updates[1])[i - 12])) /
                        8;
    CHECK(static_cast<double>(after[i]) == static_cast<double>(model[i]) + mean);
  }
  CHECK((product(adapters_of(after), adapters()->matrices[0]) - products).norm() > 1);
}

TEST_CASE("ranks: a segment with one contributor is that contributor's, with zero padding a share of it") {
  const std::vector<float> model = model_of(2);
  const std::vector<Update> updates = {update_of(0, 2, 9), update_of(1, 4, 1)};
  const std::vector<double> own = factors(model, updates[1]);
  const std::vector<float> segments = round_of("mean", model, updates);
  const std::vector<float> padded = round_of("zero_pad", model, updates);
  for (std::size_t i = 20; i < 40; ++i) {
    CHECK(static_cast<double>(segments[12 + i]) == own[i]);
    CHECK(static_cast<double>(padded[12 + i]) == doctest::Approx(own[i] / 10).epsilon(1e-6));
  }
}

TEST_CASE("ranks: a segment is the zero-padded sum over the share of those who have it") {
  const std::vector<float> model = model_of(3);
  const std::vector<Update> updates = {update_of(0, 1, 2), update_of(1, 3, 3), update_of(2, 4, 5)};
  const std::vector<float> segments = round_of("mean", model, updates);
  const std::vector<float> padded = round_of("zero_pad", model, updates);
  const double shares[] = {1.0, 0.8, 0.8, 0.5};
  for (std::size_t i = 0; i < 40; ++i)
    CHECK(static_cast<double>(padded[12 + i]) ==
          doctest::Approx(shares[i / 10] * static_cast<double>(segments[12 + i])).epsilon(1e-6));
}

TEST_CASE("ranks: a segment that nobody has keeps its bits, and so do frozen weights") {
  const std::vector<float> model = model_of(4);
  const std::vector<float> after = round_of("mean", model, {update_of(0, 2, 3), update_of(1, 1, 4)});
  CHECK(std::equal(model.begin(), model.begin() + 12, after.begin()));
  CHECK(std::equal(model.begin() + 32, model.end(), after.begin() + 32));
  CHECK_FALSE(std::equal(model.begin() + 12, model.begin() + 32, after.begin() + 12));
}

TEST_CASE("ranks: cutting off then averaging is averaging then cutting off") {
  const std::vector<float> model = model_of(5);
  const std::vector<Update> whole = {update_of(0, 4, 2), update_of(1, 4, 7)};
  std::vector<Update> cut = whole;
  for (Update& update : cut) {
    std::vector<float> values = values_of(update);
    values.resize(20);
    update.coverage = Coverage::of({adapters()->prefix(2)});
    update.values = std::make_shared<TestValues>(std::move(values), false);
  }
  const std::vector<float> after_whole = round_of("mean", model, whole);
  const std::vector<float> after_cut = round_of("mean", model, cut);
  CHECK(std::equal(after_whole.begin(), after_whole.begin() + 32, after_cut.begin()));
}

TEST_CASE("ranks: HetLoRA weighs each client by the norm of its product") {
  const std::vector<float> model = model_of(6);
  const std::vector<Update> updates = {update_of(0, 2, 100), update_of(1, 4, 1)};
  double norms[2] = {};
  for (std::size_t c = 0; c < 2; ++c) {
    for (const AdaptedMatrix& m : adapters()->matrices)
      norms[c] += product(factors(model, updates[c]), m).squaredNorm();
    norms[c] = std::sqrt(norms[c]);
  }
  const std::vector<float> after = round_of("hetlora", model, updates);
  for (std::size_t i = 0; i < 40; ++i) {
    double expected = norms[1] * factors(model, updates[1])[i];
    if (i < 20) expected += norms[0] * factors(model, updates[0])[i];
    CHECK(static_cast<double>(after[12 + i]) ==
          doctest::Approx(expected / (norms[0] + norms[1])).epsilon(1e-6));
  }
}

TEST_CASE("ranks: FlexLoRA of enough ranks is the mean of products, its first ranks the best of so many") {
  const std::vector<float> model = model_of(7);
  const std::vector<Update> updates = {update_of(0, 1, 1), update_of(1, 3, 3)};
  const std::vector<float> after = round_of("flexlora", model, updates);
  CHECK(std::equal(model.begin(), model.begin() + 12, after.begin()));
  for (const AdaptedMatrix& m : adapters()->matrices) {
    const Dense mean =
        0.25 * product(factors(model, updates[0]), m) + 0.75 * product(factors(model, updates[1]), m);
    const std::vector<double> rows = adapters_of(after);
    CHECK((product(rows, m) - mean).norm() <= 1e-5 * mean.norm());
    // Eckart and Young: the error of the first rank is the second singular value.
    const Eigen::JacobiSVD<Dense> svd(mean);
    const Dense first = product({rows.begin(), rows.begin() + 10}, m);
    CHECK((mean - first).norm() == doctest::Approx(svd.singularValues()(1)).epsilon(1e-5));
  }
}

TEST_CASE("ranks: FLoRA adds the mean of products to the frozen weights, and adapters begin anew") {
  const std::vector<float> model = model_of(8);
  const std::vector<Update> updates = {update_of(0, 2, 3), update_of(1, 4, 1)};
  const std::vector<float> after = round_of("flora", model, updates);
  for (const AdaptedMatrix& m : adapters()->matrices) {
    const Dense mean =
        0.75 * product(factors(model, updates[0]), m) + 0.25 * product(factors(model, updates[1]), m);
    for (std::size_t o = 0; o < m.out; ++o)
      for (std::size_t i = 0; i < m.in; ++i) {
        const std::size_t at = m.weight + o * m.in + i;
        const double moved = 2 * mean(static_cast<Eigen::Index>(o), static_cast<Eigen::Index>(i));
        CHECK(static_cast<double>(after[at]) ==
              doctest::Approx(static_cast<double>(model[at]) + moved).epsilon(1e-5));
      }
    CHECK(product(adapters_of(after), m).norm() == 0);
  }
}

TEST_CASE("ranks: with A frozen the mean of the factors B is the mean of products") {
  const std::vector<float> model = model_of(9);
  std::vector<Update> updates;
  for (std::uint32_t client = 0; client < 2; ++client) {
    Rng rng(client);
    std::vector<float> values(kRank * 5);
    for (float& value : values) value = half(rng);
    Update update = test_update(client, std::move(values), client + 1);
    std::vector<Range> ranges;
    for (std::size_t j = 0; j < kRank; ++j) ranges.push_back({12 + j * 10 + 5, 12 + j * 10 + 10});
    update.coverage = Coverage::of(ranges);
    updates.push_back(std::move(update));
  }
  const std::vector<float> after = round_of("mean", model, updates);
  for (const AdaptedMatrix& m : adapters()->matrices) {
    Dense mean = Dense::Zero(static_cast<Eigen::Index>(m.out), static_cast<Eigen::Index>(m.in));
    for (const Update& update : updates) {
      std::vector<double> rows = adapters_of(model);
      for (std::size_t j = 0; j < kRank; ++j)
        for (std::size_t i = 0; i < 5; ++i)
          rows[j * 10 + 5 + i] += static_cast<double>(values_of(update)[j * 5 + i]);
      mean += static_cast<double>(update.weight.value()) / 3 * product(rows, m);
    }
    CHECK((product(adapters_of(after), m) - mean).norm() <= 1e-5 * mean.norm());
  }
}

TEST_CASE("ranks: neither the order of arrival nor a second reading shows in a rule for factors") {
  const std::vector<float> model = model_of(10);
  const std::vector<Update> updates = {update_of(0, 2, 3), update_of(1, 4, 1), update_of(2, 3, 7)};
  const std::vector<Update> turned = {updates[2], updates[0], updates[1]};
  for (const char* rule : {"zero_pad", "hetlora", "flexlora", "flora"})
    CHECK(round_of(rule, model, updates) == round_of(rule, model, turned));
}

TEST_CASE("ranks: an update that is no prefix of ranks is refused by its client") {
  Sequential sequential;
  const auto rule = make_aggregator("flexlora", context());
  const TestValues before(model_of(1), true);
  rule->see_model(before);
  Update update = update_of(4, 1, 1);
  update.coverage = Coverage::of({{22, 32}});
  REQUIRE(rule->add(std::vector<Update>{update}, sequential));
  const auto prepared = rule->prepare(sequential);
  REQUIRE_FALSE(prepared);
  CHECK(prepared.error().message ==
        "the update of client 4 must cover the first ranks of every adapter and nothing else");
}

namespace {

std::unique_ptr<Planner> rank_planner(const std::string& kind, const std::string& options,
                                      std::size_t clients) {
  const PlannerFactory make = read_part(kind_named(planner_kinds(), kind), options).make;
  auto made = make({context().layout, clients, Rng(1), adapters()});
  REQUIRE(made);
  return std::move(*made);
}

}  // namespace

TEST_CASE("ranks: a client's plan is a prefix of that of each with more ranks, evenly shared out") {
  const auto planner = rank_planner("rank_prefix", "ranks = [1, 2, 4]\n", 9);
  std::vector<std::size_t> counts;
  for (std::uint32_t client = 0; client < 9; ++client) {
    const Coverage plan = planner->plan({RoundNumber(1), ClientId(client), Rng(1)});
    REQUIRE(plan.ranges().size() == 1);
    CHECK(plan.ranges()[0].begin == 12);
    // Parameters: for each matrix rank times (inputs + outputs).
    CHECK(plan.count() % (2 + 3 + 3 + 2) == 0);
    counts.push_back(plan.count() / 10);
  }
  std::ranges::sort(counts);
  CHECK(counts == std::vector<std::size_t>{1, 1, 1, 2, 2, 2, 4, 4, 4});
}

TEST_CASE("ranks: a client that prunes itself keeps what it asked for, and no more later") {
  const auto planner = rank_planner("rank_prefix", "ranks = [4]\n", 2);
  const auto ranks = [&](std::uint32_t client) {
    return planner->plan({RoundNumber(2), ClientId(client), Rng(1)}).count() / 10;
  };
  CHECK(ranks(0) == 4);
  planner->limit(ClientId(0), 0.75);
  CHECK(ranks(0) == 3);
  CHECK(ranks(1) == 4);
  planner->limit(ClientId(0), 0.01);
  CHECK(ranks(0) == 1);
  planner->limit(ClientId(0), 1);
  CHECK(ranks(0) == 1);
}

TEST_CASE("ranks: only the factors B of a client's ranks are planned where A is frozen") {
  const auto planner = rank_planner("rank_prefix_b", "ranks = [2]\n", 1);
  CHECK(planner->plan({RoundNumber(1), ClientId(0), Rng(1)}) == Coverage::of({{17, 22}, {27, 32}}));
}

TEST_CASE("ranks: a planner of ranks is refused by a model without them, or with fewer") {
  const auto message = [&](const std::string& options, std::shared_ptr<const AdapterLayout> shape) {
    const PlannerFactory make = read_part(kind_named(planner_kinds(), "rank_prefix"), options).make;
    return make({context().layout, 1, Rng(1), std::move(shape)}).error().message;
  };
  CHECK(message("ranks = [2]\n", nullptr) ==
        "it divides the ranks of adapters, but the model has no adapters; set model.adapter.rank");
  CHECK(message("ranks = [2, 8]\n", adapters()) == "rank 8 is above model.adapter.rank, which is 4");
}

TEST_CASE("ranks: zero padding reaches as far as somebody in the round, what nobody has keeps its bits") {
  const std::vector<float> model = model_of(12);
  for (const char* rule : {"zero_pad", "hetlora"}) {
    const std::vector<float> after = round_of(rule, model, {update_of(0, 1, 3), update_of(1, 2, 4)});
    CHECK_FALSE(std::equal(model.begin() + 12, model.begin() + 32, after.begin() + 12));
    CHECK(std::equal(model.begin() + 32, model.end(), after.begin() + 32));
  }
}

}  // namespace fedge::aggregation
