#include "privacy/secure_aggregation/graph.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "privacy/secure_aggregation/graph_parameters.h"
#include "privacy/secure_aggregation/session.h"
#include "tests/unit/privacy/vectors.h"

namespace fedge::privacy {
namespace {

Digest seed_of(std::uint8_t value) {
  Digest seed{};
  seed[0] = value;
  return seed;
}

struct Row {
  std::uint32_t members;
  GraphAssumptions assumptions;
  std::uint32_t degree;
  std::uint32_t threshold;
};

}  // namespace

TEST_CASE("mask graph: neighbours are mutual, never oneself, and as many as the degree") {
  for (const std::uint32_t members : {3U, 4U, 10U, 101U})
    for (std::uint32_t degree = 2; degree < members && degree <= 12; degree += 2) {
      const MaskGraph graph = MaskGraph::neighbours(members, degree, seed_of(7));
      for (std::uint32_t a = 0; a < members; ++a) {
        const auto near = graph.neighbours(a);
        CHECK(near.size() == degree);
        CHECK(std::ranges::is_sorted(near));
        CHECK(graph.holders(a) == near);
        for (std::uint32_t b = 0; b < members; ++b) {
          CHECK(graph.adjacent(a, b) == std::ranges::binary_search(near, b));
          CHECK(graph.adjacent(a, b) == graph.adjacent(b, a));
        }
      }
    }
}

TEST_CASE("mask graph: of members - 1 neighbours it is the complete one") {
  const MaskGraph sparse = MaskGraph::neighbours(7, 6, seed_of(1));
  const MaskGraph complete = MaskGraph::complete(7);
  for (std::uint32_t a = 0; a < 7; ++a) {
    CHECK(sparse.neighbours(a) == complete.neighbours(a));
    CHECK(complete.holders(a).size() == 7);
  }
}

TEST_CASE("mask graph: another seed draws another graph, the same one the same") {
  const MaskGraph a = MaskGraph::neighbours(100, 10, seed_of(1));
  const MaskGraph again = MaskGraph::neighbours(100, 10, seed_of(1));
  const MaskGraph b = MaskGraph::neighbours(100, 10, seed_of(2));
  CHECK(a.neighbours(5) == again.neighbours(5));
  CHECK(a.neighbours(5) != b.neighbours(5));
  // Any two members are neighbours as often as expected: 100 pairs (0, x) over 2000 graphs.
  std::vector<int> together(100, 0);
  for (int s = 0; s < 2000; ++s) {
    Digest seed{};
    seed[0] = static_cast<std::uint8_t>(s);
    seed[1] = static_cast<std::uint8_t>(s >> 8);
    for (const std::uint32_t other : MaskGraph::neighbours(100, 10, seed).neighbours(0)) ++together[other];
  }
  for (std::size_t x = 1; x < 100; ++x) {
    CHECK(together[x] > 130);  // expected 202, standard deviation 13.5
    CHECK(together[x] < 275);
  }
}

TEST_CASE("graph parameters: the published rows") {
  const auto curious = Adversary::kCurious;
  const auto malicious = Adversary::kSemiMalicious;
  const Row rows[] = {{100, {.05, .05, curious}, 12, 6},     {100, {.05, .05, malicious}, 16, 11},
                      {100, {.05, .33, malicious}, 72, 39},  {1000, {.05, .05, malicious}, 52, 37},
                      {1000, {.1, .3, malicious}, 414, 247}, {1000, {.33, .05, malicious}, 132, 109},
                      {10000, {.1, .1, curious}, 54, 31},    {100000, {.33, .33, curious}, 480, 251},
                      {1000000, {.05, .05, curious}, 38, 22}};
  for (const Row& row : rows) {
    const auto graph = sparse_graph(row.members, row.assumptions);
    REQUIRE(graph);
    CHECK(graph->degree == row.degree);
    CHECK(graph->threshold == row.threshold);
    CHECK(check_secure(row.members, *graph, row.assumptions));
  }
}

TEST_CASE("graph parameters: all reference values") {
  const auto vectors = reference_vectors("secagg_plus");
  CHECK(vectors.size() == 43);
  for (const auto& vector : vectors) {
    const auto& params = vector["params"];
    const bool curious = params["adversary"] == "curious_server";
    const auto graph = sparse_graph(params["n"], {params["corrupt"], params["dropout"],
                                                  curious ? Adversary::kCurious : Adversary::kSemiMalicious});
    REQUIRE(graph);
    INFO(vector["id"].get<std::string>());
    CHECK(graph->degree == vector["value"].get<double>());
    CHECK(graph->threshold == params["t"].get<std::uint32_t>());
  }
}

TEST_CASE(
    "graph parameters: fewer neighbours or a lower threshold are found out, and what cannot be is said") {
  const GraphAssumptions assumptions{.corrupt = .1, .dropout = .1};
  const auto graph = sparse_graph(1000, assumptions);
  REQUIRE(graph);
  GraphParameters worse = *graph;
  --worse.threshold;
  CHECK(check_secure(1000, worse, assumptions).error().code == ErrorCode::kRefused);
  worse = {.degree = 20, .threshold = 20};
  CHECK_FALSE(check_secure(1000, worse, assumptions));
  // Refused even with a threshold of all shares: the honest members could be disconnected.
  worse = {.degree = 3, .threshold = 3};
  CHECK_FALSE(check_secure(1000, worse, assumptions));
  worse = {.degree = graph->degree, .threshold = graph->degree + 1};
  CHECK_FALSE(check_secure(1000, worse, assumptions));
  CHECK(sparse_graph(100, {.corrupt = .5, .dropout = .45}).error().message.find("50 %") != std::string::npos);
  for (std::uint32_t n = 1; n < 200; ++n) {
    const GraphParameters all = complete_graph(n);
    CHECK(check_secure(n, all, assumptions));
    CHECK(3 * all.threshold > 2 * n);
    CHECK(all.threshold <= n);
    CHECK_FALSE(
        check_secure(n, {.degree = n - 1, .threshold = all.threshold - 1, .complete = true}, assumptions));
  }
}

TEST_CASE("graph: what a run says of its masks does not weaken what a member's owner asks for") {
  // A coordinator that claims to control no member would have ten clients mask with two neighbours each.
  const SecureRules described{
      .assumptions = {.corrupt = 0, .dropout = 0}, .complete_below = 2, .min_survivors = 8};
  const GraphParameters weak = choose_graph(described, 10);
  CHECK_FALSE(weak.complete);
  CHECK(weak.degree == 2);
  CHECK(check_secure(10, weak, described.assumptions));
  const SecureRules own{.complete_below = 0, .min_survivors = 0};  // the default: a tenth corrupt
  const SecureRules asked = stricter(described, own);
  CHECK_FALSE(check_secure(10, weak, asked.assumptions));
  CHECK(check_secure(10, complete_graph(10), asked.assumptions));
  CHECK(asked.min_survivors == 8);
  CHECK(stricter(own, described).min_survivors == 8);
  CHECK(stricter({.min_survivors = 3}, {.min_survivors = 9}).min_survivors == 9);
  CHECK(stricter({.assumptions = {.corrupt = .3}}, own).assumptions.corrupt == .3);
}

}  // namespace fedge::privacy
