// Tracks of random policies against the written rules with sets and maps, and laws that hold for every
// policy.
#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "aggregation/tracks/resolution.h"
#include "core/config/document.h"
#include "tests/support/tracks.h"

namespace fedge::aggregation::test {
namespace {

constexpr std::uint32_t kRounds = 5;

Ids some_of(std::mt19937_64& engine, std::uint32_t clients, std::uint32_t most) {
  IdSet ids;
  const std::uint64_t count = 1 + engine() % most;
  for (std::uint64_t i = 0; i < count; ++i) ids.insert(static_cast<std::uint32_t>(engine() % clients));
  return {ids.begin(), ids.end()};
}

// Few clients and short lists, so that patterns coincide, contain each other and exclude their owners.
Policy random_policy(std::mt19937_64& engine) {
  const auto clients = static_cast<std::uint32_t>(1 + engine() % 12);
  Policy policy = policy_of(clients, {});
  const std::uint64_t count = engine() % 10;
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto kind = static_cast<DisagreementKind>(engine() % 5);
    const bool edges = kind != DisagreementKind::kFull && kind != DisagreementKind::kPartialData;
    Disagreement each = disagreement(kind, some_of(engine, clients, edges ? 4 : 2),
                                     edges ? some_of(engine, clients, 3) : Ids{});
    each.from_round = RoundNumber(static_cast<std::uint32_t>(1 + engine() % kRounds));
    if (engine() % 2 == 0)
      each.until_round = RoundNumber(each.from_round.value() + static_cast<std::uint32_t>(engine() % 3));
    if (kind == DisagreementKind::kPartialData)
      each.withheld = 0.25;
    else
      each.deep = engine() % 3 == 0;
    policy.disagreements.push_back(each);
  }
  return policy;
}

template <class Check>
void for_random_rounds(std::uint64_t seed, int trials, Check check) {
  std::mt19937_64 engine(seed);
  for (int trial = 0; trial < trials; ++trial) {
    CAPTURE(trial);
    const Policy policy = random_policy(engine);
    for (std::uint32_t round = 1; round <= kRounds + 3; ++round) {
      CAPTURE(round);
      check(policy, round, engine);
    }
  }
}

}  // namespace

TEST_CASE("tracks: exclusions are those of the rules, with the rounds they count from") {
  for_random_rounds(1, 2000, [](const Policy& policy, std::uint32_t round, std::mt19937_64&) {
    const ReferenceForm expected = reference_form(policy, round);
    const Exclusions form = exclusions_in(policy, RoundNumber(round));
    std::size_t edges = 0;
    for (const auto& [c, excluded] : expected.exclusions) {
      std::vector<Exclusion> list;
      for (const auto& [x, since] : excluded) list.push_back({ClientId(x), RoundNumber(since)});
      REQUIRE(std::ranges::equal(form.of(ClientId(c)), list));
      edges += list.size();
    }
    REQUIRE(form.edges.size() == edges);
    std::vector<Exclusion> withdrawn;
    for (const auto& [c, since] : expected.withdrawn) withdrawn.push_back({ClientId(c), RoundNumber(since)});
    REQUIRE(form.withdrawn == withdrawn);
  });
}

TEST_CASE("tracks: patterns, owners and members are those of the rules, with every option") {
  for_random_rounds(2, 2000, [](const Policy& policy, std::uint32_t round, std::mt19937_64& engine) {
    ReferenceOptions reference{engine() % 2 == 0, engine() % 2 == 0, {}};
    for (const std::uint32_t id : some_of(engine, static_cast<std::uint32_t>(policy.clients), 4))
      if (engine() % 2 == 0) reference.remembered.insert(id);
    const auto remembered = client_ids({reference.remembered.begin(), reference.remembered.end()});
    const Resolution resolution = resolve(exclusions_in(policy, RoundNumber(round)),
                                          {reference.strict, reference.keep_orphan_global, remembered});
    const std::vector<Track> expected = reference_tracks(policy, round, reference);
    REQUIRE(tracks_of(resolution) == expected);
    std::uint64_t load = 0;
    for (std::size_t t = 0; t < expected.size(); ++t) {
      load += expected[t].members.size();
      REQUIRE(resolution.member_count(t) == expected[t].members.size());
      for (std::uint32_t c = 0; c < policy.clients; ++c) {
        REQUIRE(resolution.is_member(t, ClientId(c)) == expected[t].members.contains(c));
        REQUIRE((resolution.primary(ClientId(c)) == t) == expected[t].owners.contains(c));
      }
    }
    REQUIRE(resolution.load() == load);
  });
}

TEST_CASE("tracks: sharing tracks never costs more trainings, and none are saved where all patterns differ") {
  int saved = 0;
  for_random_rounds(3, 1000, [&](const Policy& policy, std::uint32_t round, std::mt19937_64&) {
    const ReferenceForm form = reference_form(policy, round);
    std::uint64_t without = 0;
    std::size_t present = 0;
    for (std::uint32_t c = 0; c < policy.clients; ++c) {
      if (form.withdrawn.contains(c)) continue;
      ++present;
      const auto own = form.exclusions.find(c);
      for (std::uint32_t x = 0; x < policy.clients; ++x)
        without += !form.withdrawn.contains(x) && (own == form.exclusions.end() || !own->second.contains(x));
    }
    const Resolution resolution = resolve(exclusions_in(policy, RoundNumber(round)));
    REQUIRE(resolution.load() <= without);
    if (resolution.tracks() == present) REQUIRE(resolution.load() == without);
    saved += resolution.load() < without;
  });
  CHECK(saved > 1000);
}

TEST_CASE("tracks: strict, nobody trains where somebody whom it excludes trains as well") {
  int differ = 0;
  for_random_rounds(4, 1000, [&](const Policy& policy, std::uint32_t round, std::mt19937_64&) {
    const Exclusions form = exclusions_in(policy, RoundNumber(round));
    const Resolution strict = resolve(form, {.strict = true});
    for (std::size_t t = 0; t < strict.tracks(); ++t)
      for (const ClientId member : strict.members(t))
        for (const Exclusion& excluded : form.of(member)) REQUIRE(!strict.is_member(t, excluded.client));
    differ += strict.load() < resolve(form).load();
  });
  CHECK(differ > 1000);
}

TEST_CASE("tracks: a large policy of long lists, shared by several, is that of the rules") {
  std::mt19937_64 engine(5);
  for (int trial = 0; trial < 5; ++trial) {
    CAPTURE(trial);
    Policy policy = policy_of(400, {});
    for (int i = 0; i < 150; ++i)
      policy.disagreements.push_back(disagreement(static_cast<DisagreementKind>(2 + engine() % 3),
                                                  some_of(engine, 400, 5), some_of(engine, 400, 40)));
    policy.disagreements.push_back(full(some_of(engine, 400, 30)));
    for (const bool strict : {false, true}) {
      const Resolution resolution = resolve(exclusions_in(policy, RoundNumber(1)), {.strict = strict});
      REQUIRE(tracks_of(resolution) == reference_tracks(policy, 1, {.strict = strict}));
    }
  }
}

TEST_CASE("tracks: a policy's text reads back as the same policy") {
  std::mt19937_64 engine(6);
  for (int trial = 0; trial < 500; ++trial) {
    CAPTURE(trial);
    Policy policy = random_policy(engine);
    policy.strict = engine() % 2 == 0;
    policy.keep_orphan_global = engine() % 2 == 0;
    if (engine() % 2 == 0)
      for (std::size_t c = 0; c < policy.clients; ++c)
        policy.names.push_back("client \"" + std::to_string(engine() % 100) + "\\" + std::to_string(c) +
                               "\" é");
    const auto document = config::parse_toml(to_toml(policy), "again.toml");
    REQUIRE(document);
    const auto again = read_policy(*document);
    REQUIRE_MESSAGE(again, again.error().message);
    REQUIRE(*again == policy);
    REQUIRE(to_toml(*again) == to_toml(policy));
  }
}

}  // namespace fedge::aggregation::test
