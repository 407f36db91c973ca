#include "aggregation/planners/block.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "tests/support/text.h"
#include "tests/unit/aggregation/planning.h"

namespace fedge::aggregation {
namespace {

using fedge::test::contains;
using planning::chain;
using planning::error_of;
using planning::plan;
using planning::planner;

// Five layers of two parameters each.
std::shared_ptr<const ParameterLayout> five() { return chain({{1, 1}, {1, 1}, {1, 1}, {1, 1}, {1, 1}}); }

std::unique_ptr<BlockPlanner> blocks(BlockSchedule schedule, std::uint64_t seed = 1,
                                     const std::shared_ptr<const ParameterLayout>& layout = five()) {
  auto made = BlockPlanner::make({.schedule = schedule}, {layout, 3, Rng(seed)});
  REQUIRE(made);
  return std::unique_ptr<BlockPlanner>(static_cast<BlockPlanner*>(made->release()));
}

std::vector<std::size_t> order(BlockPlanner& planner, std::uint32_t rounds) {
  std::vector<std::size_t> result;
  for (std::uint32_t round = 1; round <= rounds; ++round)
    result.push_back(planner.block_in(RoundNumber(round)));
  return result;
}

bool repeats(const std::vector<std::size_t>& order) {
  return std::ranges::adjacent_find(order) != order.end();
}

}  // namespace

TEST_CASE("blocks: every parameter is in one block, and all clients of a round train the same one") {
  const auto layout = planning::small_mlp();
  const auto made = planner({"block", "schedule = \"cyclic\"\n", layout, 4});
  CHECK(plan(*made, 0, 1) == Coverage::of({{0, 50}}));
  CHECK(plan(*made, 1, 2) == Coverage::of({{50, 105}}));
  CHECK(plan(*made, 2, 3) == Coverage::of({{105, 123}}));
  CHECK(plan(*made, 3, 4) == plan(*made, 0, 1));
  CHECK(made->share(ClientId(0)) == doctest::Approx(1.0 / 3));
}

TEST_CASE("blocks: the first and the last layer are blocks apart, one block together, or not trained") {
  const auto model = planning::small_mlp();
  const auto blocks_with = [&](BlockEnds ends) {
    const auto blocks = blocks_of(*model, ends);
    REQUIRE(blocks);
    return *blocks;
  };
  CHECK(blocks_with(BlockEnds::kApart).size() == 3);
  CHECK(blocks_with(BlockEnds::kTogether) ==
        std::vector<Coverage>{Coverage::of({{0, 50}, {105, 123}}), Coverage::of({{50, 105}})});
  CHECK(blocks_with(BlockEnds::kFrozen) == std::vector<Coverage>{Coverage::of({{50, 105}})});
  const auto flat = chain({{3, 4}, {2, 3}});
  CHECK(contains(error_of({"block", "ends = \"frozen\"\n", flat}), "set ends = \"apart\""));
  CHECK(contains(error_of({"block", "ends = \"middle\"\n", flat}), "planner.ends"));
}

TEST_CASE("blocks: frozen tensors are in no block, and adapters cannot be divided") {
  ParameterLayout layout;
  layout.add("in", {4}, {.layer = 0, .trainable = false});
  layout.add("out", {2}, {.layer = 1});
  const auto blocks = blocks_of(layout, BlockEnds::kApart);
  REQUIRE(blocks);
  CHECK(*blocks == std::vector<Coverage>{Coverage::of({{4, 6}})});
  layout.add("adapter", {2, 3}, {.layer = 2, .order = TensorOrder::kRankMajor});
  const auto refused = blocks_of(layout, BlockEnds::kApart);
  REQUIRE(!refused);
  CHECK(contains(refused.error().message, "remove model.adapter"));
}

TEST_CASE("blocks: no schedule trains a block twice in a row, except where there is one block") {
  for (const BlockSchedule schedule : {BlockSchedule::kCyclic, BlockSchedule::kPermutation,
                                       BlockSchedule::kUniform, BlockSchedule::kImportance})
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      CHECK(!repeats(order(*blocks(schedule, seed), 200)));
      CHECK(!repeats(order(*blocks(schedule, seed, chain({{1, 1}, {1, 1}})), 20)));
      CHECK(!repeats(order(*blocks(schedule, seed, chain({{1, 1}, {1, 1}, {1, 1}})), 60)));
      CHECK(order(*blocks(schedule, seed, chain({{1, 1}})), 3) == std::vector<std::size_t>{0, 0, 0});
    }
}

TEST_CASE("blocks: a permutation trains each block once in as many rounds as there are blocks") {
  std::set<std::vector<std::size_t>> seen;
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    const auto all = order(*blocks(BlockSchedule::kPermutation, seed), 50);
    for (auto epoch = all.begin(); epoch != all.end(); epoch += 5) {
      std::vector<std::size_t> one(epoch, epoch + 5);
      seen.insert(one);
      std::ranges::sort(one);
      CHECK(one == std::vector<std::size_t>{0, 1, 2, 3, 4});
    }
  }
  CHECK(seen.size() > 40);  // of 100 epochs and 120 orders
}

TEST_CASE("blocks: the uniform schedule trains every other block equally often") {
  const auto all = order(*blocks(BlockSchedule::kUniform), 8000);
  std::map<std::pair<std::size_t, std::size_t>, double> pairs;
  for (std::size_t i = 1; i < all.size(); ++i) ++pairs[{all[i - 1], all[i]}];
  CHECK(pairs.size() == 20);
  for (const auto& [pair, count] : pairs) CHECK(count == doctest::Approx(400).epsilon(0.2));  // 4 sigma
}

TEST_CASE("blocks: importance follows the norms of the updates that trained a block last") {
  const std::vector<double> norms = {4, 2, 1, 1, 0};
  const auto made = blocks(BlockSchedule::kImportance);
  std::map<std::pair<std::size_t, std::size_t>, double> pairs;
  std::vector<double> from(5);
  std::vector<std::size_t> all;
  for (std::uint32_t round = 1; round <= 8000; ++round) {
    all.push_back(made->block_in(RoundNumber(round)));
    made->observe(RoundNumber(round), norms[all.back()]);
  }
  CHECK(std::vector<std::size_t>(all.begin(), all.begin() + 5) == std::vector<std::size_t>{0, 1, 2, 3, 4});
  for (std::size_t i = 7; i < all.size(); ++i) {
    ++pairs[{all[i - 1], all[i]}];
    ++from[all[i - 1]];
  }
  CHECK(std::ranges::count(all, 4U) <= 2);  // its updates are zeros
  const double after_1 = pairs[{1, 0}] / from[1];
  CHECK(after_1 == doctest::Approx(4.0 / 6).epsilon(0.07));
  CHECK(pairs[{0, 1}] / from[0] == doctest::Approx(0.5).epsilon(0.07));
  CHECK(pairs[{0, 2}] / from[0] == doctest::Approx(0.25).epsilon(0.12));
}

TEST_CASE("blocks: the block of a round does not depend on the norms of the round before it") {
  const auto early = blocks(BlockSchedule::kImportance);
  const auto late = blocks(BlockSchedule::kImportance);
  for (std::uint32_t round = 1; round <= 300; ++round) {
    const std::size_t block = early->block_in(RoundNumber(round));
    const std::size_t next = early->block_in(RoundNumber(round + 1));  // asked while the round is running
    CHECK(late->block_in(RoundNumber(round)) == block);
    for (auto* each : {early.get(), late.get()}) each->observe(RoundNumber(round), 1.0 + round * 7 % 11);
    CHECK(late->block_in(RoundNumber(round + 1)) == next);
  }
}

}  // namespace fedge::aggregation
