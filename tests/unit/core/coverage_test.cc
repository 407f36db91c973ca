#include "core/coverage.h"

#include <doctest/doctest.h>

#include <set>

#include "core/rng.h"

using fedge::Coverage;
using fedge::Range;

namespace {

std::set<std::size_t> members(const Coverage& coverage) {
  std::set<std::size_t> result;
  for (const Range& range : coverage.ranges())
    for (std::size_t i = range.begin; i < range.end; ++i) result.insert(i);
  return result;
}

Coverage random_coverage(fedge::Rng& rng, std::size_t size) {
  std::vector<Range> ranges;
  for (std::uint64_t i = rng.below(6); i > 0; --i) {
    const std::size_t begin = rng.below(size);
    ranges.push_back({begin, begin + rng.below(size - begin + 1)});
  }
  return Coverage::of(ranges);
}

bool is_canonical(const Coverage& coverage) {
  std::size_t last = 0;
  bool first = true;
  for (const Range& range : coverage.ranges()) {
    if (range.begin >= range.end || (!first && range.begin <= last)) return false;
    last = range.end;
    first = false;
  }
  return true;
}

}  // namespace

TEST_CASE("coverage: overlapping and touching ranges become one, empty ones vanish") {
  const Coverage coverage = Coverage::of({{5, 7}, {0, 2}, {7, 9}, {3, 3}, {1, 3}});
  CHECK(coverage.ranges() == std::vector<Range>{{0, 3}, {5, 9}});
  CHECK(coverage.count() == 7);
  CHECK(coverage.end() == 9);
}

TEST_CASE("coverage: a payload position maps to its parameter") {
  const Coverage coverage = Coverage::of({{2, 4}, {10, 13}});
  CHECK(coverage.parameter_at(0) == 2);
  CHECK(coverage.parameter_at(1) == 3);
  CHECK(coverage.parameter_at(2) == 10);
  CHECK(coverage.parameter_at(4) == 12);
}

TEST_CASE("coverage: union, intersection, difference and containment agree with sets, 2,000 random pairs") {
  const std::uint64_t seed = 20240;
  CAPTURE(seed);
  fedge::Rng rng(seed);
  for (int trial = 0; trial < 2000; ++trial) {
    const Coverage a = random_coverage(rng, 40);
    const Coverage b = random_coverage(rng, 40);
    const auto set_a = members(a);
    const auto set_b = members(b);
    std::set<std::size_t> both;
    std::set<std::size_t> either = set_a;
    std::set<std::size_t> only_a;
    either.insert(set_b.begin(), set_b.end());
    for (const std::size_t i : set_a) (set_b.contains(i) ? both : only_a).insert(i);
    REQUIRE(members(a.unite(b)) == either);
    REQUIRE(members(a.intersect(b)) == both);
    REQUIRE(members(a.subtract(b)) == only_a);
    REQUIRE(a.contains(b) == (both == set_b));
    for (std::size_t i = 0; i < 41; ++i) REQUIRE(a.contains(i) == set_a.contains(i));
    for (const Coverage& result : {a, a.unite(b), a.intersect(b), a.subtract(b)}) {
      REQUIRE(is_canonical(result));
      const auto decoded = Coverage::decode(result.encode(), 40, 100);
      REQUIRE(decoded);
      REQUIRE(*decoded == result);
    }
  }
}

TEST_CASE("coverage: the whole model encodes in a handful of bytes, as written down in the protocol") {
  // gap 0, length 25,000,000 = 0x17D7840 in groups of seven bits, low first
  CHECK(Coverage::all(25'000'000).encode() == std::vector<std::uint8_t>{0x00, 0xC0, 0xF0, 0xF5, 0x0B});
}

TEST_CASE("coverage: hostile encodings are refused") {
  const auto refused = [](std::vector<std::uint8_t> bytes, std::size_t size = 100, std::size_t ranges = 10) {
    return !Coverage::decode(bytes, size, ranges);
  };
  CHECK(refused({0x00}));                            // a gap without a length
  CHECK(refused({0x80}));                            // ends inside a varint
  CHECK(refused({0x00, 0x00}));                      // an empty range
  CHECK(refused({0x00, 0x01, 0x00, 0x01}));          // two ranges that touch
  CHECK(refused({0x80, 0x00, 0x01}));                // zero padded to two bytes
  CHECK(refused({0x00, 0x65}));                      // 101 parameters of 100
  CHECK(refused({0x64, 0x01}));                      // begins behind the last parameter
  CHECK(refused({0x00, 0x01, 0x01, 0x01}, 100, 1));  // more ranges than allowed
  // 2^64 - 1 and longer varints
  CHECK(refused({0x01, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x01}));
  CHECK(refused({0x7F, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x7F}));
}
