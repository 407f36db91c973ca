#include "sim/event_queue.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "core/rng.h"

using namespace fedge;

TEST_CASE("event queue: pops by time, and events of one time in the order they were scheduled") {
  sim::EventQueue<int> queue;
  Rng rng(4);
  std::vector<std::pair<Time, int>> expected;
  for (int i = 0; i < 500; ++i) {
    const Time at(Duration(static_cast<std::int64_t>(rng.below(20))));
    queue.push(at, i);
    expected.emplace_back(at, i);
  }
  std::sort(expected.begin(), expected.end());
  for (const auto& [at, value] : expected) {
    REQUIRE(!queue.empty());
    const auto entry = queue.pop();
    CHECK(entry.at == at);
    CHECK(entry.payload == value);
  }
  CHECK(queue.empty());
}

TEST_CASE("event queue: the same when events come while others go") {
  sim::EventQueue<int> queue;
  Rng rng(5);
  std::set<std::pair<Time, int>> expected;
  Time now;
  for (int i = 0; i < 20'000; ++i) {
    if (rng.below(100) < (i < 10'000 ? 60U : 40U) || expected.empty()) {
      const Time at = now + Duration(static_cast<std::int64_t>(rng.below(50)));
      queue.push(at, i);
      expected.emplace(at, i);
    } else {
      CHECK(queue.next().at == expected.begin()->first);
      const auto entry = queue.pop();
      REQUIRE(std::pair(entry.at, entry.payload) == *expected.begin());
      expected.erase(expected.begin());
      now = entry.at;
    }
    REQUIRE(queue.size() == expected.size());
  }
}
