// Short notation for disagreements, and a reference of the tracks' rules with sets and maps, slow and
// obvious.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "aggregation/tracks/resolution.h"

namespace fedge::aggregation::test {

using Ids = std::vector<std::uint32_t>;
using IdSet = std::set<std::uint32_t>;
inline constexpr std::uint32_t kForEver = UINT32_MAX;

inline std::vector<ClientId> client_ids(Ids ids) {
  std::sort(ids.begin(), ids.end());
  std::vector<ClientId> result;
  for (const std::uint32_t id : ids) result.emplace_back(id);
  return result;
}

inline Ids numbers(std::span<const ClientId> clients) {
  Ids result;
  for (const ClientId client : clients) result.push_back(client.value());
  return result;
}

inline Disagreement disagreement(DisagreementKind kind, const Ids& clients, const Ids& against,
                                 std::uint32_t from = 1, std::uint32_t until = kForEver) {
  Disagreement result{.kind = kind, .clients = client_ids(clients), .against = client_ids(against)};
  result.from_round = RoundNumber(from);
  if (until != kForEver) result.until_round = RoundNumber(until);
  return result;
}
inline Disagreement inbound(const Ids& clients, const Ids& against, std::uint32_t from = 1,
                            std::uint32_t until = kForEver) {
  return disagreement(DisagreementKind::kInbound, clients, against, from, until);
}
inline Disagreement outbound(const Ids& clients, const Ids& against) {
  return disagreement(DisagreementKind::kOutbound, clients, against);
}
inline Disagreement bidirectional(const Ids& clients, const Ids& against) {
  return disagreement(DisagreementKind::kBidirectional, clients, against);
}
inline Disagreement full(const Ids& clients, std::uint32_t from = 1, std::uint32_t until = kForEver) {
  return disagreement(DisagreementKind::kFull, clients, {}, from, until);
}

inline Policy policy_of(std::size_t clients, std::vector<Disagreement> disagreements) {
  Policy policy;
  policy.clients = clients;
  policy.disagreements = std::move(disagreements);
  return policy;
}

// Each of n clients excludes the next k of the ring.
inline Policy ring(std::uint32_t n, std::uint32_t k) {
  Policy policy = policy_of(n, {});
  for (std::uint32_t c = 0; c < n; ++c) {
    Ids next;
    for (std::uint32_t i = 1; i <= k; ++i) next.push_back((c + i) % n);
    if (k > 0) policy.disagreements.push_back(inbound({c}, next));
  }
  return policy;
}

// A track in a form that tests can write down.
struct Track {
  IdSet exclude;
  IdSet owners;
  IdSet members;
  auto operator<=>(const Track&) const = default;
};

inline std::vector<Track> tracks_of(const Resolution& resolution) {
  std::vector<Track> result;
  for (std::size_t t = 0; t < resolution.tracks(); ++t) {
    const auto set = [](const Ids& ids) { return IdSet(ids.begin(), ids.end()); };
    result.push_back({set(numbers(resolution.pattern(t))), set(numbers(resolution.owners(t))),
                      set(numbers(resolution.members(t)))});
  }
  return result;
}

// The reference's normal form of a policy.
struct ReferenceForm {
  std::map<std::uint32_t, std::map<std::uint32_t, std::uint32_t>> exclusions;  // client, excluded, since
  std::map<std::uint32_t, std::uint32_t> withdrawn;                            // client, since round
};

inline ReferenceForm reference_form(const Policy& policy, std::uint32_t round) {
  ReferenceForm form;
  for (const Disagreement& d : policy.disagreements) {
    if (round < d.from_round.value() || (d.until_round && round > d.until_round->value())) continue;
    const std::uint32_t since = d.deep ? 1 : d.from_round.value();
    const auto put = [&](std::map<std::uint32_t, std::uint32_t>& map, ClientId who) {
      const auto [it, added] = map.emplace(who.value(), since);
      if (!added) it->second = std::min(it->second, since);
    };
    for (const ClientId c : d.clients) {
      if (d.kind == DisagreementKind::kFull) put(form.withdrawn, c);
      for (const ClientId x : d.against) {
        if (d.kind != DisagreementKind::kOutbound) put(form.exclusions[c.value()], x);
        if (d.kind != DisagreementKind::kInbound) put(form.exclusions[x.value()], c);
      }
    }
  }
  return form;
}

struct ReferenceOptions {
  bool strict = false;
  bool keep_orphan_global = false;
  IdSet remembered;
};

inline std::vector<Track> reference_tracks(const Policy& policy, std::uint32_t round,
                                           const ReferenceOptions& options = {}) {
  ReferenceForm form = reference_form(policy, round);
  std::map<std::uint32_t, IdSet> pattern_of;
  std::map<IdSet, IdSet> owners;
  if (options.keep_orphan_global) owners[{}];
  for (std::uint32_t c = 0; c < policy.clients; ++c) {
    if (form.withdrawn.contains(c)) continue;
    IdSet pattern;
    for (const auto& [x, since] : form.exclusions[c])
      if (!form.withdrawn.contains(x) || options.remembered.contains(x)) pattern.insert(x);
    pattern_of[c] = pattern;
    owners[pattern].insert(c);
  }
  std::vector<Track> tracks;
  for (const auto& [pattern, who] : owners) {  // std::map sorts the sets lexicographically
    Track track{pattern, who, {}};
    for (const auto& [c, own] : pattern_of) {
      const bool fits =
          !options.strict || std::includes(pattern.begin(), pattern.end(), own.begin(), own.end());
      if (!pattern.contains(c) && fits) track.members.insert(c);
    }
    tracks.push_back(track);
  }
  return tracks;
}

}  // namespace fedge::aggregation::test
