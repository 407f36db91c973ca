// The accumulator on random updates: its sums depend only on the set of updates, and equal those of an
// independent slow reference.
#include "aggregation/accumulator.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

#include "core/platform/thread_pool.h"
#include "tests/unit/aggregation/reference.h"

namespace fedge::aggregation {
namespace {

// Spans several blocks (4,096) and several thread tasks (65,536).
constexpr std::size_t kSize = 150'001;

// Runs the last task first.
class Backwards final : public Parallel {
 public:
  void for_each(std::size_t tasks, const std::function<void(std::size_t)>& task) override {
    for (std::size_t i = tasks; i > 0; --i) task(i - 1);
  }
  std::size_t width() const override { return 1; }
};

struct RandomUpdate {
  Coverage coverage;
  SampleCount weight;
  std::vector<float> values;
  UpdateView view() const { return {weight, &coverage, values}; }
};

std::shared_ptr<const ParameterLayout> layout() {
  auto result = std::make_shared<ParameterLayout>();
  result->add("body", {kSize - 10}).add("head", {10});
  return result;
}

Coverage random_coverage(std::mt19937& engine) {
  if (engine() % 3 == 0) return Coverage::all(kSize);
  std::vector<Range> ranges;
  for (std::uint32_t r = 0; r < 1 + engine() % 20; ++r) {
    const std::size_t begin = engine() % kSize;
    ranges.push_back({begin, std::min<std::size_t>(kSize, begin + engine() % 30'000)});
  }
  return Coverage::of(ranges);
}

// Weights of up to a million: larger values need the wide conversion, the others the fast one.
std::vector<RandomUpdate> random_updates(std::size_t count, std::uint32_t seed) {
  std::mt19937 engine(seed);
  std::vector<RandomUpdate> updates(count);
  for (RandomUpdate& update : updates) {
    update.coverage = random_coverage(engine);
    update.weight = SampleCount(engine() % 2 == 0 ? 1 + engine() % 600 : 1 + engine() % 1'000'000);
    update.values = reference::values(update.coverage.count(), 256.0F, static_cast<std::uint32_t>(engine()));
  }
  return updates;
}

// Equal means imply equal sums: the weights are equal, and a double distinguishes the sums.
std::vector<double> mean_of(const Accumulator& accumulator) {
  std::vector<double> mean(kSize);
  accumulator.mean(0, mean);
  return mean;
}

std::vector<double> fold_all(const std::vector<RandomUpdate>& updates, const std::vector<std::size_t>& order,
                             std::size_t together, Parallel& parallel,
                             const FoldKernel& kernel = fold_kernels().front()) {
  Accumulator accumulator(layout(), {}, kernel);
  std::vector<UpdateView> waiting;
  for (const std::size_t u : order) {
    waiting.push_back(updates[u].view());
    if (waiting.size() < together) continue;
    REQUIRE(accumulator.fold(waiting, parallel));
    waiting.clear();
  }
  REQUIRE(accumulator.fold(waiting, parallel));
  return mean_of(accumulator);
}

std::vector<std::size_t> in_order(std::size_t count) {
  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), std::size_t{0});
  return order;
}

}  // namespace

TEST_CASE("accumulator: 20 random orders, groupings and ways to run give the same bits") {
  for (const std::uint32_t seed : {1U, 2U}) {
    CAPTURE(seed);
    const std::vector<RandomUpdate> updates = random_updates(13, seed);
    std::vector<std::size_t> order = in_order(updates.size());
    Sequential sequential;
    Backwards backwards;
    ThreadPool pool(2);
    const std::vector<double> expected = fold_all(updates, order, 1, sequential);
    std::mt19937 engine(seed);
    for (int arrival = 0; arrival < 20; ++arrival) {
      std::shuffle(order.begin(), order.end(), engine);
      const std::size_t together = 1 + engine() % updates.size();
      Parallel& parallel = arrival % 3 == 0   ? static_cast<Parallel&>(pool)
                           : arrival % 3 == 1 ? static_cast<Parallel&>(backwards)
                                              : sequential;
      REQUIRE(fold_all(updates, order, together, parallel) == expected);
    }
    for (const FoldKernel& kernel : fold_kernels())
      REQUIRE(fold_all(updates, order, 5, sequential, kernel) == expected);
  }
}

TEST_CASE("accumulator: sums are those of the slow reference, fast and wide conversions alike") {
  const std::uint32_t seed = 3;
  const std::vector<RandomUpdate> updates = random_updates(7, seed);
  std::vector<reference::Wide> sums(kSize, 0);
  std::vector<std::uint64_t> weights(kSize, 0);
  for (const RandomUpdate& update : updates) {
    std::size_t position = 0;
    for (const Range& range : update.coverage.ranges())
      for (std::size_t i = range.begin; i < range.end; ++i, ++position) {
        sums[i] += reference::contribution(update.values[position], update.weight.value(), 28);
        weights[i] += update.weight.value();
      }
  }
  Sequential parallel;
  const std::vector<double> mean = fold_all(updates, in_order(updates.size()), 4, parallel);
  for (std::size_t i = 0; i < kSize; ++i) {
    const double expected = weights[i] == 0 ? 0.0
                                            : static_cast<double>(static_cast<std::int64_t>(sums[i])) /
                                                  (static_cast<double>(weights[i]) * 0x1p28);
    REQUIRE(mean[i] == expected);
  }
}

TEST_CASE("accumulator: an update in random pieces gives what it gives in one") {
  const std::uint32_t seed = 4;
  const std::vector<RandomUpdate> updates = random_updates(6, seed);
  Sequential parallel;
  const std::vector<double> expected = fold_all(updates, in_order(updates.size()), 1, parallel);
  std::mt19937 engine(seed);
  Accumulator pieces(layout(), {});
  for (const RandomUpdate& update : updates) {
    REQUIRE(pieces.open({update.weight, &update.coverage, {}}));
    for (std::size_t first = 0; first < update.values.size();) {
      const std::size_t count = std::min<std::size_t>(update.values.size() - first, 1 + engine() % 50'000);
      const auto piece = std::span(update.values).subspan(first, count);
      REQUIRE(pieces.check(update.coverage, first, piece));
      pieces.add({update.weight, &update.coverage, piece}, first);
      first += count;
    }
  }
  CHECK(mean_of(pieces) == expected);
}

TEST_CASE("accumulator: a bad value anywhere leaves no trace of its call") {
  const std::uint32_t seed = 5;
  std::vector<RandomUpdate> updates = random_updates(6, seed);
  std::mt19937 engine(seed);
  Sequential sequential;
  ThreadPool pool(2);
  for (int trial = 0; trial < 20; ++trial) {
    CAPTURE(trial);
    Accumulator accumulator(layout(), {});
    const std::vector<UpdateView> first = {updates[0].view(), updates[1].view()};
    REQUIRE(accumulator.fold(first, sequential));
    const std::vector<double> before = mean_of(accumulator);
    RandomUpdate bad = updates[2 + engine() % 4];
    const float poison[] = {std::nanf(""), std::numeric_limits<float>::infinity(), 1e30F, -300.0F};
    for (std::uint32_t i = 0; i < 1 + engine() % 3; ++i)
      bad.values[engine() % bad.values.size()] = poison[engine() % 4];
    const std::vector<UpdateView> second = {updates[2].view(), bad.view(), updates[3].view(),
                                            updates[4].view()};
    const auto folded = accumulator.fold(second, trial % 2 == 0 ? static_cast<Parallel&>(pool) : sequential);
    REQUIRE_FALSE(folded);
    CHECK(folded.error().message.find("update 2 of 4: parameter ") == 0);
    REQUIRE(mean_of(accumulator) == before);
    REQUIRE(accumulator.updates() == 2);
  }
}

TEST_CASE("accumulator: the largest admissible total of the largest values does not wrap") {
  const FixedPoint format;
  Accumulator accumulator(layout(), format);
  const Coverage one = Coverage::of({{5, 6}});
  const std::vector<float> largest = {-256.0F};
  Sequential parallel;
  const UpdateView view{format.max_total_weight(), &one, largest};
  REQUIRE(accumulator.fold({&view, 1}, parallel));
  CHECK_FALSE(accumulator.admit(SampleCount(1)));
  CHECK(mean_of(accumulator)[5] == -256.0);
}

}  // namespace fedge::aggregation
