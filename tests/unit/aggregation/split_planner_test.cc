// The cuts of split training: their kinds, bounds, and how they follow losses and times.
#include "aggregation/planners/split.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/support/text.h"
#include "tests/unit/aggregation/planning.h"

namespace fedge::aggregation {
namespace {

using fedge::test::contains;

constexpr std::size_t kCutBlocks = 6;
constexpr std::size_t kCutRank = 4;

// An embedding, six blocks of one matrix with an adapter, and a head.
struct SmallTransformer {
  SmallTransformer() {
    auto built = std::make_shared<ParameterLayout>();
    AdapterLayout adapted{.rank = kCutRank, .matrices = {}};
    built->add("embedding", {7, 2}, {.layer = 0, .trainable = false});
    for (std::uint32_t block = 1; block <= kCutBlocks; ++block) {
      const std::string name = "block" + std::to_string(block);
      built->add(name, {3, 2}, {.layer = block, .trainable = false});
      adapted.matrices.push_back(
          {.name = name, .weight = built->tensors().back().offset, .in = 2, .out = 3, .a = adapted.row});
      adapted.row += 2;
    }
    built->add("head", {7, 2}, {.layer = kCutBlocks + 1, .trainable = false});
    adapted.b_begin = adapted.row;
    for (AdaptedMatrix& matrix : adapted.matrices) matrix.b = adapted.row, adapted.row += 3;
    adapted.offset = built->size();
    built->add(AdapterLayout::kTensor, {kCutRank, adapted.row},
               {.layer = kCutBlocks + 2, .order = TensorOrder::kRankMajor});
    layout = std::move(built);
    adapters = std::make_shared<const AdapterLayout>(std::move(adapted));
  }
  std::shared_ptr<const ParameterLayout> layout;
  std::shared_ptr<const AdapterLayout> adapters;
};

std::unique_ptr<SplitPlanner> planner_of(const SplitOptions& options, std::size_t clients = 5,
                                         std::uint64_t seed = 1) {
  const SmallTransformer model;
  auto made = SplitPlanner::make(options, {model.layout, clients, Rng(seed), model.adapters});
  REQUIRE_MESSAGE(made, made.error().message);
  return std::unique_ptr<SplitPlanner>(static_cast<SplitPlanner*>(made->release()));
}

std::vector<std::size_t> cuts_of(SplitPlanner& planner, std::size_t clients = 5) {
  std::vector<std::size_t> all;
  for (std::uint32_t client = 0; client < clients; ++client) all.push_back(planner.cut(ClientId(client)));
  return all;
}

struct LastUpdate {
  double loss = 1;
  double seconds = 1;
};
// All clients deliver in this round, and the next period begins.
void deliver_all(SplitPlanner& planner, std::uint64_t period, const std::vector<LastUpdate>& updates) {
  const RoundNumber round(static_cast<std::uint32_t>(5 * period + 5));
  for (std::uint32_t client = 0; client < updates.size(); ++client)
    planner.delivered({.round = round,
                       .client = ClientId(client),
                       .loss = updates[client].loss,
                       .time = seconds(updates[client].seconds)});
  (void)planner.plan({RoundNumber(round.value() + 1), ClientId(0), Rng(1)});
}

std::string split_refusal(const std::string& options) {
  const auto document = config::parse_toml(options, "run.toml");
  REQUIRE(document);
  config::Reader section(document->root, "planner", document->name);
  const PlannerPart part = read_split(section);
  if (const auto finished = section.finish(); !finished) return finished.error().message;
  const SmallTransformer model;
  const auto made = part.make({model.layout, 5, Rng(1), model.adapters});
  return made ? "accepted" : made.error().message;
}

}  // namespace

TEST_CASE("cuts: a plan is what lies below the client's cut, and its share the part of all parameters") {
  const SmallTransformer model;
  const auto layout = SplitLayout::of(*model.layout, *model.adapters, 2);
  REQUIRE(layout);
  REQUIRE(layout->blocks() == kCutBlocks);
  const auto planner = planner_of({.kind = CutKind::kFixed, .blocks = 3, .cut_ranks = 2});
  CHECK(planner->plan({RoundNumber(1), ClientId(2), Rng(1)}) == layout->below(3));
  // Two blocks with all ranks, and the one at the cut with two of them, each of 2 + 3 floats.
  CHECK(layout->below(3).count() == (2 * kCutRank + 2) * 5);
  CHECK(layout->above(3).count() == (2 + 2 * kCutRank) * 5);
  CHECK(planner->share(ClientId(2)) == doctest::Approx(50.0 / static_cast<double>(model.layout->size())));
}

TEST_CASE(
    "cuts: fixed ones are alike, random ones cover the blocks, and resources say how many a device holds") {
  CHECK(cuts_of(*planner_of({.kind = CutKind::kFixed, .blocks = 4})) == std::vector<std::size_t>(5, 4));
  const auto random = planner_of({.kind = CutKind::kRandom, .least = 2}, 600);
  std::vector<int> count(kCutBlocks + 1);
  for (const std::size_t cut : cuts_of(*random, 600)) ++count.at(cut);
  CHECK(count[0] + count[1] == 0);
  for (std::size_t cut = 2; cut <= kCutBlocks; ++cut) CHECK(count[cut] > 80);
  CHECK(cuts_of(*planner_of({.kind = CutKind::kRandom, .least = 2}, 600), 600) == cuts_of(*random, 600));
  const Levels levels{.shares = {0.5, 1.0, 0.1}, .fractions = {0.4, 0.4, 0.2}, .declared = false};
  auto held = cuts_of(*planner_of({.kind = CutKind::kResources, .levels = levels}));
  std::ranges::sort(held);
  CHECK(held == std::vector<std::size_t>{1, 3, 3, 6, 6});
  for (const CutKind kind : {CutKind::kFixed, CutKind::kRandom, CutKind::kAdaptive}) {
    const auto bound = cuts_of(*planner_of({.kind = kind, .blocks = 4, .levels = levels}));
    const auto most = cuts_of(*planner_of({.kind = CutKind::kResources, .levels = levels}));
    for (std::size_t client = 0; client < 5; ++client) CHECK(bound[client] <= most[client]);
  }
}

TEST_CASE("cuts: a declared capability bounds the blocks") {
  const auto planner = planner_of(
      {.kind = CutKind::kResources, .levels = {.shares = {0.2, 0.5, 1.0}, .fractions = {}, .declared = true}},
      3);
  planner->admit(ClientId(0), 1.0);
  planner->admit(ClientId(1), 0.6);
  planner->admit(ClientId(2), 0.1);
  CHECK(cuts_of(*planner, 3) == std::vector<std::size_t>{6, 3, 1});
}

TEST_CASE("adaptive cuts: better clients take a block over, slow ones give one up, at most one in a period") {
  // With losses 1, 2, 3, 4, 5: z = 1.41, 0.71, 0, -0.71, -1.41.
  const auto by_loss = planner_of({.blocks = 3});
  deliver_all(*by_loss, 0, {{1}, {2}, {3}, {4}, {5}});
  CHECK(cuts_of(*by_loss) == std::vector<std::size_t>{4, 4, 3, 2, 2});
  deliver_all(*by_loss, 1, {{1}, {2}, {3}, {4}, {5}});
  CHECK(cuts_of(*by_loss) == std::vector<std::size_t>{5, 5, 3, 1, 1});
  deliver_all(*by_loss, 2, {{1}, {2}, {3}, {4}, {5}});
  CHECK(cuts_of(*by_loss) == std::vector<std::size_t>{6, 6, 3, 1, 1});
  // Twice the median time takes kappa = 2 blocks, but only one at a time; 1.2 times takes 0.4, rounded to
  // none.
  const auto by_time = planner_of({.blocks = 3});
  deliver_all(*by_time, 0, {{1, 1}, {1, 1}, {1, 0.1}, {1, 2}, {1, 1.2}});
  CHECK(cuts_of(*by_time) == std::vector<std::size_t>{3, 3, 3, 2, 3});
}

TEST_CASE("adaptive cuts: equal losses and times change nothing, and halves are rounded to even") {
  const auto planner = planner_of({.blocks = 3});
  for (std::uint64_t period = 0; period < 4; ++period)
    deliver_all(*planner, period, std::vector<LastUpdate>(5, LastUpdate{2.5, 7}));
  CHECK(cuts_of(*planner) == std::vector<std::size_t>(5, 3));
  // A quarter more than the median time takes half a block. 2.5 and 1.5 become 2, and 3.5 becomes 4.
  for (const auto& [from, to] : {std::pair{3U, 2U}, {2U, 2U}, {4U, 4U}}) {
    const auto halves = planner_of({.blocks = from}, 3);
    deliver_all(*halves, 0, {{1, 4}, {1, 4}, {1, 5}});
    CHECK(cuts_of(*halves, 3) == std::vector<std::size_t>{from, from, to});
  }
}

TEST_CASE("adaptive cuts: only updates of the last period count, and missing ones leave the cut") {
  const auto planner = planner_of({.blocks = 3});
  planner->delivered({RoundNumber(2), ClientId(0), 1, seconds(1)});
  planner->delivered({RoundNumber(3), ClientId(1), 5, seconds(1)});
  (void)planner->plan({RoundNumber(5), ClientId(0), Rng(1)});
  CHECK(cuts_of(*planner) == std::vector<std::size_t>(5, 3));
  (void)planner->plan({RoundNumber(6), ClientId(0), Rng(1)});
  const std::vector<std::size_t> moved = {4, 2, 3, 3, 3};
  CHECK(cuts_of(*planner) == moved);
  // Three periods without an update.
  (void)planner->plan({RoundNumber(21), ClientId(0), Rng(1)});
  CHECK(cuts_of(*planner) == moved);
}

TEST_CASE("cuts: options that the model does not fit are refused") {
  CHECK(split_refusal("cut = \"fixed\"\nblocks = 6\n") == "accepted");
  CHECK(split_refusal("blocks = 7\n") == "blocks = 7 is above the number of blocks of the model, 6");
  CHECK(split_refusal("least = 8\nblocks = 6\n") ==
        "least = 8 is above the number of blocks of the model, 6");
  CHECK(contains(split_refusal("cut_ranks = 5\n"),
                 "rank 5 at the cut is above model.adapter.rank, which is 4"));
  CHECK(contains(split_refusal("shares = []\n"), "lists 0 levels"));
  CHECK(contains(split_refusal("cut = \"best\"\n"), "planner.cut"));
  const auto without = SplitPlanner::make({}, {planning::small_mlp(), 2, Rng(1)});
  REQUIRE_FALSE(without);
  CHECK(contains(without.error().message, "set model.adapter.rank"));
}

}  // namespace fedge::aggregation
