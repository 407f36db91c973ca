#include "aggregation/weight_map.h"

#include <doctest/doctest.h>

#include <random>
#include <vector>

namespace fedge::aggregation {

using Steps = std::vector<WeightMap::Step>;

namespace {

Steps steps_of(const WeightMap& map) { return {map.steps().begin(), map.steps().end()}; }

}  // namespace

TEST_CASE("weight map: nothing added is weight 0 everywhere") {
  const WeightMap map;
  CHECK(map.at(0).value() == 0);
  CHECK(map.at(1'000'000).value() == 0);
  CHECK(map.covered().empty());
}

TEST_CASE("weight map: whole models take two steps however many there are") {
  WeightMap map;
  for (int i = 0; i < 100; ++i) map.add(Coverage::all(50), SampleCount(3));
  CHECK(steps_of(map) == Steps{{0, 300}, {50, 0}});
}

TEST_CASE("weight map: overlapping coverages add where they overlap") {
  WeightMap map;
  map.add(Coverage::of({{2, 6}}), SampleCount(10));
  map.add(Coverage::of({{4, 8}, {10, 12}}), SampleCount(1));
  CHECK(steps_of(map) == Steps{{0, 0}, {2, 10}, {4, 11}, {6, 1}, {8, 0}, {10, 1}, {12, 0}});
  CHECK(map.covered() == Coverage::of({{2, 8}, {10, 12}}));
}

TEST_CASE("weight map: neighbours that come to the same weight share a step") {
  WeightMap map;
  map.add(Coverage::of({{0, 4}}), SampleCount(5));
  map.add(Coverage::of({{4, 9}}), SampleCount(5));
  CHECK(steps_of(map) == Steps{{0, 5}, {9, 0}});
}

TEST_CASE("weight map: random coverages agree with counting parameter by parameter") {
  std::mt19937 engine(20240611);
  for (int round = 0; round < 50; ++round) {
    WeightMap map;
    std::vector<std::uint64_t> expected(64, 0);
    for (int update = 0; update < 6; ++update) {
      std::vector<Range> ranges;
      for (int r = 0; r < 4; ++r) {
        const std::size_t begin = engine() % 60;
        ranges.push_back({begin, begin + engine() % 5});
      }
      const Coverage coverage = Coverage::of(ranges);
      const std::uint64_t weight = 1 + engine() % 3;
      map.add(coverage, SampleCount(weight));
      for (const Range& range : coverage.ranges())
        for (std::size_t i = range.begin; i < range.end; ++i) expected[i] += weight;
    }
    for (std::size_t i = 0; i < expected.size(); ++i) REQUIRE(map.at(i).value() == expected[i]);
    const std::size_t first = engine() % 64;
    const std::size_t last = first + engine() % (65 - first);
    std::vector<std::uint64_t> visited(64, 0);
    map.for_each(first, last, [&](std::size_t begin, std::size_t end, std::uint64_t weight) {
      for (std::size_t i = begin; i < end; ++i) visited[i] += weight;
    });
    for (std::size_t i = 0; i < 64; ++i) REQUIRE(visited[i] == (i >= first && i < last ? expected[i] : 0));
  }
}

}  // namespace fedge::aggregation
