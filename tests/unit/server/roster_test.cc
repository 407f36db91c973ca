#include <doctest/doctest.h>

#include <map>
#include <vector>

#include "core/rng.h"
#include "server/engine/roster.h"

namespace fedge::server {

TEST_CASE("roster: after any comings and goings it holds and goes through what a map does") {
  Rng rng(1);
  Roster roster;
  std::map<ClientId, std::uint64_t> expected;
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
      roster.set(client, {SampleCount(samples), 0.5});
      expected[client] = samples;
    }
    CHECK(roster.size() == expected.size());
    const auto* found = roster.find(client);
    REQUIRE((found != nullptr) == expected.contains(client));
    if (found != nullptr) CHECK(found->samples.value() == expected[client]);
  }
  std::vector<std::pair<ClientId, std::uint64_t>> gone_through;
  roster.each([&](ClientId client, const Roster::Entry& entry) {
    CHECK(entry.capability == 0.5);
    gone_through.emplace_back(client, entry.samples.value());
  });
  CHECK(gone_through == std::vector<std::pair<ClientId, std::uint64_t>>(expected.begin(), expected.end()));
}

TEST_CASE("roster: who never came is not there, and does not leave") {
  Roster roster;
  roster.erase(ClientId(7));
  CHECK(roster.size() == 0);
  CHECK(roster.find(ClientId(7)) == nullptr);
  roster.set(ClientId(8), {});
  CHECK(roster.find(ClientId(7)) == nullptr);
}

}  // namespace fedge::server
