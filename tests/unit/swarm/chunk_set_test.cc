#include "swarm/chunk_set.h"

#include <doctest/doctest.h>

#include <set>
#include <vector>

#include "core/rng.h"

namespace fedge::swarm {
namespace {

std::vector<std::size_t> members(const ChunkSet& set) {
  std::vector<std::size_t> result;
  set.for_each([&](std::size_t chunk) { result.push_back(chunk); });
  return result;
}

}  // namespace

TEST_CASE("chunk set: it is the set of numbers that were added and not removed, ascending") {
  Rng rng(3);
  for (const std::size_t size : {1UL, 63UL, 64UL, 65UL, 200UL}) {
    ChunkSet set(size);
    std::set<std::size_t> reference;
    for (int i = 0; i < 500; ++i) {
      const std::size_t chunk = rng.below(size);
      if (rng.below(2) == 0)
        CHECK(set.add(chunk) == reference.insert(chunk).second);
      else
        CHECK(set.remove(chunk) == (reference.erase(chunk) == 1));
      REQUIRE(set.count() == reference.size());
    }
    CHECK(members(set) == std::vector<std::size_t>(reference.begin(), reference.end()));
    CHECK_FALSE(set.has(size));
  }
}

TEST_CASE("chunk set: a full one has each chunk, and no bit beyond the last") {
  for (const std::size_t size : {0UL, 1UL, 64UL, 70UL}) {
    const ChunkSet full = ChunkSet::full(size);
    ChunkSet filled(size);
    for (std::size_t i = 0; i < size; ++i) filled.add(i);
    CHECK(full == filled);
    CHECK(full.complete());
  }
}

TEST_CASE("chunk set: its bytes give it back, and nothing else does") {
  ChunkSet set(70);
  for (const std::size_t chunk : {0UL, 9UL, 63UL, 64UL, 69UL}) set.add(chunk);
  auto bytes = set.bytes();
  REQUIRE(bytes.size() == 9);
  CHECK(bytes[1] == std::byte{2});
  CHECK(ChunkSet::from_bytes(bytes, 70) == set);
  CHECK_FALSE(ChunkSet::from_bytes(bytes, 73));
  CHECK_FALSE(ChunkSet::from_bytes(bytes, 69));  // a bit beyond the last chunk
  bytes[8] |= std::byte{0x80};
  CHECK_FALSE(ChunkSet::from_bytes(bytes, 70));
}

TEST_CASE("chunk set: union, intersection and difference are those of sets") {
  Rng rng(4);
  const std::size_t size = 150;
  ChunkSet a(size);
  ChunkSet b(size);
  for (int i = 0; i < 60; ++i) {
    a.add(rng.below(size));
    b.add(rng.below(size));
  }
  std::vector<std::size_t> only_a;
  std::size_t common = 0;
  ChunkSet both = a;
  both.add_all(b);
  for (std::size_t i = 0; i < size; ++i) {
    CHECK(both.has(i) == (a.has(i) || b.has(i)));
    if (a.has(i) && b.has(i)) ++common;
    if (a.has(i) && !b.has(i)) only_a.push_back(i);
  }
  CHECK(a.count_common(b) == common);
  std::vector<std::size_t> difference;
  a.for_each_without(b, [&](std::size_t chunk) { difference.push_back(chunk); });
  CHECK(difference == only_a);
}

}  // namespace fedge::swarm
