// Tracks of the published scenarios, written down by hand: arXiv:2604.23386 and the authors' public code,
// which numbers clients from 0 to n - 1 as this project does.
#include "aggregation/tracks/resolution.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

#include "tests/support/tracks.h"

namespace fedge::aggregation::test {
namespace {

Resolution resolve_round(const Policy& policy, std::uint32_t round = 1, const ResolveOptions& options = {}) {
  return resolve(exclusions_in(policy, RoundNumber(round)), options);
}

std::vector<Track> tracks_in(const Policy& policy, std::uint32_t round = 1) {
  return tracks_of(resolve_round(policy, round));
}

std::uint64_t load(const Policy& policy, bool keep_orphan_global) {
  return resolve_round(policy, 1, {.keep_orphan_global = keep_orphan_global}).load();
}

using Tracks = std::vector<Track>;

IdSet range(std::uint32_t n) {
  IdSet result;
  for (std::uint32_t i = 0; i < n; ++i) result.insert(i);
  return result;
}

// Six clients with one disagreement of each kind.
Policy second_scenario() {
  return policy_of(6, {inbound({0}, {1}), outbound({2}, {3}), bidirectional({4}, {5}), full({1})});
}

Policy third_scenario() {
  return policy_of(6, {inbound({0}, {1, 2}), inbound({1}, {3, 4}), inbound({2}, {5}), inbound({3}, {0}),
                       inbound({4}, {2}), inbound({5}, {1})});
}

// The third scenario with some exclusions ending after round 2 and others after round 4.
Policy ending_scenario() {
  return policy_of(
      6, {inbound({0}, {1}), inbound({0}, {2}, 1, 2), inbound({1}, {3}, 1, 2), inbound({1}, {4}, 1, 4),
          inbound({2}, {5}, 1, 4), inbound({3}, {0}), inbound({4}, {2}, 1, 4), inbound({5}, {1})});
}

// Returns the policy with every client c renamed to names[c].
Policy renamed(const Policy& policy, const Ids& names) {
  Policy result = policy;
  for (Disagreement& each : result.disagreements)
    for (auto* list : {&each.clients, &each.against}) {
      Ids ids;
      for (const ClientId id : *list) ids.push_back(names[id.value()]);
      *list = client_ids(ids);
    }
  return result;
}

Tracks renamed(const Tracks& tracks, const Ids& names) {
  const auto rename = [&](const IdSet& set) {
    IdSet result;
    for (const std::uint32_t id : set) result.insert(names[id]);
    return result;
  };
  Tracks result;
  for (const Track& track : tracks)
    result.push_back({rename(track.exclude), rename(track.owners), rename(track.members)});
  std::sort(result.begin(), result.end());
  return result;
}

}  // namespace

TEST_CASE("tracks: without an active disagreement there is one track, everybody's") {
  const Tracks one = {{{}, range(6), range(6)}};
  CHECK(tracks_in(policy_of(6, {})) == one);
  CHECK(tracks_in(policy_of(6, {inbound({0}, {1}, 2)})) == one);
  CHECK(load(policy_of(6, {}), false) == 6);
  CHECK(load(policy_of(6, {}), true) == 6);
}

TEST_CASE("tracks: one inbound disagreement gives its client a track without the other") {
  const Policy policy = policy_of(6, {inbound({0}, {1})});
  CHECK(tracks_in(policy) == Tracks{{{}, {1, 2, 3, 4, 5}, range(6)}, {{1}, {0}, {0, 2, 3, 4, 5}}});
  CHECK(load(policy, false) == 11);
  const Resolution resolution = resolve_round(policy);
  CHECK(resolution.primary(ClientId(0)) == 1);
  CHECK(resolution.primary(ClientId(1)) == 0);
  CHECK(!resolution.is_member(1, ClientId(1)));
  CHECK(resolution.is_member(1, ClientId(5)));
  CHECK(resolution.member_count(1) == 5);
}

TEST_CASE("tracks: of each kind one, and whoever excludes a withdrawn client shares the common track") {
  const Policy policy = second_scenario();
  CHECK(tracks_in(policy) == Tracks{{{}, {0, 2}, {0, 2, 3, 4, 5}},
                                    {{2}, {3}, {0, 3, 4, 5}},
                                    {{4}, {5}, {0, 2, 3, 5}},
                                    {{5}, {4}, {0, 2, 3, 4}}});
  CHECK(load(policy, false) == 17);
  CHECK(load(policy, true) == 17);
  const Resolution resolution = resolve_round(policy);
  CHECK(numbers(resolution.withdrawn()) == Ids{1});
  CHECK(!resolution.primary(ClientId(1)));
}

TEST_CASE("tracks: every client's track is one that exists, and no two tracks have the same members") {
  // The authors' code differs: it removes a track that has the same members as another, although client 0 was
  // assigned to it.
  const Policy always = second_scenario();
  Policy by_turns = always;
  by_turns.disagreements.back() = full({1}, 1, 1);
  by_turns.disagreements.push_back(full({1}, 3, 3));
  for (std::uint32_t round = 1; round <= 4; ++round) {
    const Resolution resolution = resolve_round(by_turns, round);
    std::set<IdSet> members;
    for (const Track& track : tracks_of(resolution)) CHECK(members.insert(track.members).second);
    for (std::uint32_t c = 0; c < 6; ++c) {
      const auto primary = resolution.primary(ClientId(c));
      REQUIRE(primary.has_value() == (c != 1 || round == 2 || round == 4));
      if (primary) CHECK(std::ranges::count(resolution.owners(*primary), ClientId(c)) == 1);
    }
  }
  CHECK(tracks_in(by_turns, 1) == tracks_in(always));
  CHECK(tracks_in(by_turns, 3) == tracks_in(always));
  CHECK(tracks_in(by_turns, 2).size() == 5);
  CHECK(resolve_round(by_turns, 2).load() == 6 + 4 * 5);
}

TEST_CASE("tracks: six patterns that all differ make six tracks, and nobody owns the common one") {
  const Policy policy = third_scenario();
  CHECK(tracks_in(policy) == Tracks{{{0}, {3}, {1, 2, 3, 4, 5}},
                                    {{1}, {5}, {0, 2, 3, 4, 5}},
                                    {{1, 2}, {0}, {0, 3, 4, 5}},
                                    {{2}, {4}, {0, 1, 3, 4, 5}},
                                    {{3, 4}, {1}, {0, 1, 2, 5}},
                                    {{5}, {2}, {0, 1, 2, 3, 4}}});
  CHECK(load(policy, false) == 28);
  CHECK(load(policy, true) == 34);
  const auto orphan = tracks_of(resolve_round(policy, 1, {.keep_orphan_global = true})).front();
  CHECK(orphan == Track{{}, {}, range(6)});
}

TEST_CASE("tracks: a temporary disagreement holds until the end of its last round") {
  const Policy policy = policy_of(6, {inbound({0}, {1}, 1, 3)});
  for (std::uint32_t round = 1; round <= 3; ++round)
    CHECK(tracks_in(policy, round) == tracks_in(policy_of(6, {inbound({0}, {1})})));
  CHECK(tracks_in(policy, 4) == Tracks{{{}, range(6), range(6)}});
  const Policy later = policy_of(6, {inbound({0}, {1}, 5, 5)});
  CHECK(tracks_in(later, 4).size() == 1);
  CHECK(tracks_in(later, 5).size() == 2);
  CHECK(tracks_in(later, 6).size() == 1);
}

TEST_CASE("tracks: as disagreements end, clients share tracks and go back to the common one") {
  const Policy policy = ending_scenario();
  CHECK(tracks_in(policy, 1) == tracks_in(third_scenario()));
  std::vector<std::size_t> counts;
  for (std::uint32_t round = 1; round <= 4; ++round) counts.push_back(tracks_in(policy, round).size());
  CHECK(counts == std::vector<std::size_t>{6, 6, 5, 5});
  for (const std::uint32_t round : {3U, 4U}) {
    const Resolution resolution = resolve_round(policy, round);
    CHECK(resolution.primary(ClientId(0)) == resolution.primary(ClientId(5)));
    CHECK(numbers(resolution.pattern(*resolution.primary(ClientId(1)))) == Ids{4});
  }
  CHECK(tracks_in(policy, 5) ==
        Tracks{{{}, {1, 2, 4}, range(6)}, {{0}, {3}, {1, 2, 3, 4, 5}}, {{1}, {0, 5}, {0, 2, 3, 4, 5}}});
}

TEST_CASE("tracks: overlapping disagreements of all kinds come out as in the authors' archive") {
  const Policy policy =
      policy_of(6, {bidirectional({0}, {1}), bidirectional({0}, {3}), outbound({0}, {5}),
                    bidirectional({1}, {2}), bidirectional({1}, {4}), inbound({2}, {3}), outbound({4}, {5})});
  std::vector<std::pair<IdSet, IdSet>> expected = {
      {{0}, {3}}, {{0, 2, 4}, {1}}, {{0, 4}, {5}}, {{1}, {4}}, {{1, 3}, {0, 2}}};
  std::vector<std::pair<IdSet, IdSet>> found;
  for (const Track& track : tracks_in(policy)) found.emplace_back(track.exclude, track.owners);
  CHECK(found == expected);
}

TEST_CASE("tracks: a ring of n has n tracks of n - 1 members each") {
  for (const std::uint32_t n : {2U, 5U, 6U, 10U, 20U, 100U}) {
    const Resolution resolution = resolve_round(ring(n, 1));
    CHECK(resolution.tracks() == n);
    for (std::uint32_t c = 0; c < n; ++c) {
      CHECK(resolution.member_count(c) == n - 1);
      CHECK(numbers(resolution.pattern(c)) == Ids{c});
      CHECK(numbers(resolution.owners(c)) == Ids{(c + n - 1) % n});
    }
    CHECK(resolution.load() == n * (n - 1));
  }
  CHECK(load(ring(6, 1), false) == 30);
  CHECK(load(ring(6, 1), true) == 36);
}

TEST_CASE("tracks: five clients that exclude the sixth share one track") {
  const Policy policy = policy_of(6, {inbound({0, 1, 2, 3, 4}, {5})});
  CHECK(tracks_in(policy) == Tracks{{{}, {5}, range(6)}, {{5}, range(5), range(5)}});
  CHECK(load(policy, false) == 11);
  // Client 5 alone states the same exclusions outbound.
  CHECK(tracks_in(policy_of(6, {outbound({5}, {0, 1, 2, 3, 4})})) == tracks_in(policy));
}

TEST_CASE("tracks: twenty clients that each exclude the next four make twenty tracks of sixteen") {
  const Resolution resolution = resolve_round(ring(20, 4));
  CHECK(resolution.tracks() == 20);
  for (std::size_t t = 0; t < 20; ++t) CHECK(resolution.member_count(t) == 16);
  CHECK(load(ring(20, 4), false) == 320);
  CHECK(load(ring(20, 4), true) == 340);
}

TEST_CASE("tracks: who excludes itself owns a track that it does not train") {
  const Policy policy = policy_of(3, {inbound({0}, {0, 1})});
  CHECK(tracks_in(policy) == Tracks{{{}, {1, 2}, {0, 1, 2}}, {{0, 1}, {0}, {2}}});
  CHECK(resolve_round(policy).primary(ClientId(0)) == 1);
  CHECK(tracks_in(policy_of(3, {bidirectional({1}, {1})})) ==
        Tracks{{{}, {0, 2}, {0, 1, 2}}, {{1}, {1}, {0, 2}}});
}

TEST_CASE("tracks: a track that excludes everybody is there and has no member") {
  const Ids all = {0, 1, 2, 3, 4, 5};
  const Policy policy = policy_of(6, {inbound(all, all)});
  CHECK(tracks_in(policy) == Tracks{{range(6), range(6), {}}});
  CHECK(load(policy, false) == 0);
  CHECK(load(policy, true) == 6);
}

TEST_CASE("tracks: if all have withdrawn there is no track but one that is kept, and that is empty") {
  const Policy policy = policy_of(3, {full({0, 1, 2})});
  CHECK(tracks_in(policy).empty());
  CHECK(tracks_of(resolve_round(policy, 1, {.keep_orphan_global = true})) == Tracks{{{}, {}, {}}});
}

TEST_CASE("tracks: a withdrawn client that is remembered stays in patterns, and trains nothing") {
  const Policy policy = policy_of(4, {inbound({0}, {3}), inbound({1}, {2, 3}), full({3})});
  CHECK(tracks_in(policy) == Tracks{{{}, {0, 2}, {0, 1, 2}}, {{2}, {1}, {0, 1}}});
  const std::vector<ClientId> remembered = client_ids({2, 3});  // 2 has not withdrawn: no difference
  const Resolution resolution = resolve_round(policy, 1, {.remembered = remembered});
  CHECK(tracks_of(resolution) == Tracks{{{}, {2}, {0, 1, 2}}, {{2, 3}, {1}, {0, 1}}, {{3}, {0}, {0, 1, 2}}});
  CHECK(resolution.member_count(0) == 3);
  CHECK(resolution.member_count(1) == 2);
  CHECK(resolution.member_count(2) == 3);
  CHECK(resolution.load() == 8);
}

TEST_CASE("tracks: strict, a client trains only for tracks that exclude all whom it excludes") {
  const Policy policy = policy_of(5, {inbound({0}, {1}), inbound({2}, {1, 3}), inbound({4}, {4, 3})});
  const Resolution strict = resolve_round(policy, 1, {.strict = true});
  CHECK(tracks_of(strict) ==
        Tracks{{{}, {1, 3}, {1, 3}}, {{1}, {0}, {0, 3}}, {{1, 3}, {2}, {0, 2}}, {{3, 4}, {4}, {1}}});
  CHECK(strict.load() == 7);
  CHECK(!strict.is_member(0, ClientId(0)));
  CHECK(strict.is_member(2, ClientId(0)));
  CHECK(!strict.is_member(1, ClientId(2)));
  CHECK(resolve_round(policy).load() == 5 + 4 + 3 + 3);
}

TEST_CASE("tracks: other names for the clients give the same tracks under other names") {
  const Ids names = {3, 5, 0, 4, 1, 2};
  for (const Policy& policy : {second_scenario(), third_scenario(), ending_scenario(), ring(6, 2)})
    for (std::uint32_t round = 1; round <= 5; ++round)
      CHECK(tracks_in(renamed(policy, names), round) == renamed(tracks_in(policy, round), names));
}

TEST_CASE("tracks: the order of disagreements, and saying one twice, changes nothing") {
  for (const Policy& policy : {second_scenario(), third_scenario(), ending_scenario(), ring(20, 4)}) {
    Policy reversed = policy;
    std::ranges::reverse(reversed.disagreements);
    Policy twice = policy;
    for (const Disagreement& each : policy.disagreements) twice.disagreements.push_back(each);
    for (std::uint32_t round = 1; round <= 5; ++round) {
      CHECK(tracks_in(reversed, round) == tracks_in(policy, round));
      CHECK(tracks_in(twice, round) == tracks_in(policy, round));
    }
  }
}

TEST_CASE("tracks: the tracks, taken as disagreements, give themselves") {
  for (const Policy& policy : {third_scenario(), ending_scenario(), ring(20, 4)}) {
    const Tracks tracks = tracks_in(policy, 3);
    Policy again = policy_of(policy.clients, {});
    for (const Track& track : tracks)
      if (!track.exclude.empty())
        again.disagreements.push_back(inbound({track.owners.begin(), track.owners.end()},
                                              {track.exclude.begin(), track.exclude.end()}));
    CHECK(tracks_in(again) == tracks);
  }
}

TEST_CASE("exclusions: each counts from the earliest round that a disagreement states, a deep one from 1") {
  Policy policy =
      policy_of(4, {inbound({0}, {1, 2}, 5), outbound({2}, {0}), full({3}, 4, 9), full({3}, 2, 7)});
  policy.disagreements[1].from_round = RoundNumber(3);
  Exclusions form = exclusions_in(policy, RoundNumber(6));
  CHECK(form.clients() == 4);
  CHECK(std::ranges::equal(form.of(ClientId(0)), std::vector<Exclusion>{{ClientId(1), RoundNumber(5)},
                                                                        {ClientId(2), RoundNumber(3)}}));
  CHECK(form.of(ClientId(1)).empty());
  CHECK(form.of(ClientId(3)).empty());
  CHECK(form.withdrawn == std::vector<Exclusion>{{ClientId(3), RoundNumber(2)}});
  CHECK(exclusions_in(policy, RoundNumber(8)).withdrawn.front().since == RoundNumber(4));
  policy.disagreements[0].deep = true;
  policy.disagreements[2].deep = true;
  form = exclusions_in(policy, RoundNumber(6));
  CHECK(std::ranges::equal(form.of(ClientId(0)), std::vector<Exclusion>{{ClientId(1), RoundNumber(1)},
                                                                        {ClientId(2), RoundNumber(1)}}));
  CHECK(form.withdrawn.front().since == RoundNumber(1));
  CHECK(exclusions_in(policy, RoundNumber(4)).of(ClientId(0)).front().since == RoundNumber(3));
}

TEST_CASE("exclusions: withheld data is nobody's exclusion") {
  Policy policy = policy_of(3, {disagreement(DisagreementKind::kPartialData, {0, 1}, {})});
  policy.disagreements[0].withheld = 0.5;
  CHECK(exclusions_in(policy, RoundNumber(1)).edges.empty());
  CHECK(exclusions_in(policy, RoundNumber(1)).withdrawn.empty());
  CHECK(tracks_in(policy).size() == 1);
}

}  // namespace fedge::aggregation::test
