#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "core/rng.h"
#include "server/engine/roster.h"

namespace fedge::server {

TEST_CASE("roster: after any comings and goings it holds and goes through what a map does") {
  Rng rng(1);
  Roster roster;
  std::map<ClientId, std::pair<std::uint64_t, std::uint64_t>> expected;  // samples, said
  std::set<ClientId> busy;
  for (int step = 0; step < 20'000; ++step) {
    // Adjacent numbers, some far away, and the largest number.
    std::uint32_t number = static_cast<std::uint32_t>(rng.below(3000));
    if (rng.below(10) == 0) number += 4'000'000'000U;
    if (rng.below(500) == 0) number = 0xffffffff;
    const ClientId client(number);
    if (rng.below(3) == 0) {
      roster.erase(client);
      expected.erase(client);
    } else {
      const std::uint64_t samples = rng.below(1000);
      const std::uint64_t said = rng.below(3);
      roster.set(client, {.samples = SampleCount(samples), .capability = 0.5, .said = SampleCount(said)});
      expected[client] = {samples, said};
    }
    if (rng.below(4) == 0) {
      const ClientId other(static_cast<std::uint32_t>(rng.below(3000)));
      const bool is_busy = rng.below(2) == 0 && (expected.contains(other) || busy.contains(other));
      roster.set_busy(other, is_busy);
      if (is_busy) busy.insert(other);
      if (!is_busy) busy.erase(other);
    }
    if (step == 10'000) {
      roster.clear();
      expected.clear();
    }
    CHECK(roster.size() == expected.size());
    const auto found = roster.find(client);
    REQUIRE(found.has_value() == expected.contains(client));
    if (found) CHECK(std::pair(found->samples.value(), found->said.value()) == expected[client]);
  }
  std::map<ClientId, std::pair<std::uint64_t, std::uint64_t>> gone_through;
  std::vector<ClientId> clients, trainers;
  roster.each([&](ClientId client, const Roster::Entry& entry) {
    CHECK(entry.capability == 0.5);
    gone_through[client] = {entry.samples.value(), entry.said.value()};
    clients.push_back(client);
    if (entry.said.value() > 0) trainers.push_back(client);
  });
  CHECK(gone_through == expected);
  CHECK(std::ranges::is_sorted(clients));
  CHECK(clients.size() == expected.size());
  CHECK(roster.trainers() == trainers.size());
  std::vector<ClientId> also_trainers, free;
  roster.each_trainer([&](ClientId client, SampleCount samples, bool is_busy) {
    CHECK(samples.value() == expected[client].first);
    CHECK(is_busy == busy.contains(client));
    also_trainers.push_back(client);
    if (!is_busy) free.push_back(client);
  });
  CHECK(also_trainers == trainers);
  CHECK(free.size() < trainers.size());
  REQUIRE(roster.free() == free.size());
  for (std::size_t n = 0; n < free.size(); ++n) {
    const auto [client, entry] = roster.nth_free(n);
    CHECK(client == free[n]);
    CHECK(entry.samples.value() == expected[client].first);
  }
}

TEST_CASE("roster: who never came is not there, and does not leave") {
  Roster roster;
  roster.erase(ClientId(7));
  CHECK(roster.size() == 0);
  CHECK_FALSE(roster.find(ClientId(7)).has_value());
  roster.set(ClientId(8), {});
  CHECK_FALSE(roster.find(ClientId(7)).has_value());
}

}  // namespace fedge::server
