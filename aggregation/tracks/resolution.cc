#include "aggregation/tracks/resolution.h"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

namespace fedge::aggregation {
namespace {

// One direction of a disagreement: each of `from` excludes each of `whom`.
struct Edges {
  const std::vector<ClientId>* from;
  const std::vector<ClientId>* whom;
};

// Returns both directions; an unused one has no clients.
std::array<Edges, 2> edges_of(const Disagreement& disagreement) {
  static const std::vector<ClientId> kNobody;
  const Edges none{&kNobody, &kNobody};
  const Edges inbound{&disagreement.clients, &disagreement.against};
  const Edges outbound{&disagreement.against, &disagreement.clients};
  switch (disagreement.kind) {
    case DisagreementKind::kInbound:
      return {inbound, none};
    case DisagreementKind::kOutbound:
      return {none, outbound};
    case DisagreementKind::kBidirectional:
      return {inbound, outbound};
    case DisagreementKind::kFull:
    case DisagreementKind::kPartialData:
      break;
  }
  return {none, none};
}

RoundNumber since(const Disagreement& disagreement) {
  return disagreement.deep ? RoundNumber(1) : disagreement.from_round;
}

// Sorts by client and keeps the earliest exclusion of each client. Returns how many are left.
std::size_t tidy(std::span<Exclusion> edges) {
  const auto not_after = [](const Exclusion& a, const Exclusion& b) { return b.client <= a.client; };
  if (std::adjacent_find(edges.begin(), edges.end(), not_after) == edges.end()) return edges.size();
  std::sort(edges.begin(), edges.end());
  const auto same_client = [](const Exclusion& a, const Exclusion& b) { return a.client == b.client; };
  return static_cast<std::size_t>(std::unique(edges.begin(), edges.end(), same_client) - edges.begin());
}

// Counts the exclusions of each client, with repetitions; at index client + 1.
std::vector<std::uint32_t> count_edges(const Policy& policy, RoundNumber round) {
  std::vector<std::uint32_t> counts(policy.clients + 1, 0);
  for (const Disagreement& disagreement : policy.disagreements) {
    if (!disagreement.is_active(round)) continue;
    for (const auto* list : {&disagreement.clients, &disagreement.against})
      FEDGE_CHECK(list->empty() || list->back().value() < policy.clients, "a client that there is not");
    for (const Edges& edges : edges_of(disagreement))
      for (const ClientId c : *edges.from)
        counts[c.value() + 1] += static_cast<std::uint32_t>(edges.whom->size());
  }
  return counts;
}

}  // namespace

Exclusions exclusions_in(const Policy& policy, RoundNumber round) {
  Exclusions result;
  result.offsets = count_edges(policy, round);
  for (std::size_t i = 1; i < result.offsets.size(); ++i) result.offsets[i] += result.offsets[i - 1];
  result.edges.resize(result.offsets.back());
  std::vector<std::uint32_t> next(result.offsets.begin(), result.offsets.end() - 1);
  for (const Disagreement& disagreement : policy.disagreements) {
    if (!disagreement.is_active(round)) continue;
    for (const Edges& edges : edges_of(disagreement))
      for (const ClientId c : *edges.from)
        for (std::uint32_t& at = next[c.value()]; const ClientId x : *edges.whom)
          result.edges[at++] = {x, since(disagreement)};
    if (disagreement.kind == DisagreementKind::kFull)
      for (const ClientId c : disagreement.clients) result.withdrawn.push_back({c, since(disagreement)});
  }
  result.withdrawn.resize(tidy(result.withdrawn));

  std::uint32_t end = 0;
  for (std::size_t c = 0; c < policy.clients; ++c) {
    const std::uint32_t begin = std::exchange(result.offsets[c], end);
    const std::span<Exclusion> edges = std::span(result.edges).subspan(begin, next[c] - begin);
    const std::size_t kept = tidy(edges);
    if (begin != end) std::copy_n(edges.begin(), kept, result.edges.begin() + end);
    end += static_cast<std::uint32_t>(kept);
  }
  result.offsets.back() = end;
  result.edges.resize(end);
  return result;
}

std::span<const ClientId> Resolution::pattern(std::size_t track) const {
  const Track& it = tracks_[track];
  return std::span(patterns_).subspan(it.pattern_begin, it.pattern_end - it.pattern_begin);
}

std::span<const ClientId> Resolution::owners(std::size_t track) const {
  const Track& it = tracks_[track];
  return std::span(owners_).subspan(it.owners_begin, it.owners_end - it.owners_begin);
}

std::optional<std::size_t> Resolution::primary(ClientId client) const {
  const std::uint32_t track = track_of_[client.value()];
  return track == kNone ? std::nullopt : std::optional<std::size_t>(track);
}

bool Resolution::is_member(std::size_t track, ClientId client) const {
  const std::uint32_t own = track_of_[client.value()];
  const auto excluded = pattern(track);
  if (own == kNone || std::binary_search(excluded.begin(), excluded.end(), client)) return false;
  return !strict_ || covers(track, own);
}

bool Resolution::covers(std::size_t track, std::size_t other) const {
  const auto whole = pattern(track);
  const auto part = pattern(other);
  // Shortcut: the result of std::includes() is already known to be false.
  if (part.size() > whole.size() || (!part.empty() && whole.back() < part.back())) return false;
  return std::includes(whole.begin(), whole.end(), part.begin(), part.end());
}

std::uint64_t Resolution::load() const {
  std::uint64_t sum = 0;
  for (const Track& track : tracks_) sum += track.members;
  return sum;
}

// The tracks whose patterns are subsets of this track's, including itself. In strict mode their owners, minus
// the excluded clients, are this track's members.
std::vector<std::size_t> Resolution::parts(std::size_t track) const {
  std::vector<std::size_t> found;
  if (pattern(0).empty()) found.push_back(0);
  for (const ClientId first : pattern(track))
    for (std::size_t t = begins_with_[first.value()]; t < begins_with_[first.value() + 1]; ++t)
      if (covers(track, t)) found.push_back(t);
  return found;
}

std::vector<ClientId> Resolution::members(std::size_t track) const {
  std::vector<ClientId> result;
  result.reserve(member_count(track));
  const auto excluded = pattern(track);
  if (strict_) {
    for (const std::size_t part : parts(track))
      std::ranges::set_difference(owners(part), excluded, std::back_inserter(result));
    std::sort(result.begin(), result.end());
    return result;
  }
  auto next = excluded.begin();
  for (std::uint32_t c = 0; c < clients(); ++c) {
    const bool is_excluded = next != excluded.end() && *next == ClientId(c);
    if (is_excluded) ++next;
    if (!is_excluded && track_of_[c] != kNone) result.push_back(ClientId(c));
  }
  return result;
}

// Groups clients by pattern through a hash table, then orders the groups.
class Resolver {
 public:
  Resolver(const Exclusions& exclusions, const ResolveOptions& options)
      : exclusions_(exclusions), options_(options), dropped_(exclusions.clients(), false) {
    const std::size_t clients = exclusions.clients();
    out_.strict_ = options.strict;
    out_.track_of_.assign(clients, Resolution::kNone);
    for (const Exclusion& full : exclusions.withdrawn) {
      out_.withdrawn_.push_back(full.client);
      dropped_[full.client.value()] =
          !std::binary_search(options.remembered.begin(), options.remembered.end(), full.client);
    }
    slots_.assign(std::bit_ceil(2 * clients + 2), Resolution::kNone);
    patterns_.reserve(exclusions.edges.size());
  }

  Resolution run() {
    group_clients();
    order_groups();
    list_owners();
    count_members();
    return std::move(out_);
  }

 private:
  struct Group {
    std::uint32_t begin = 0;  // in patterns_
    std::uint32_t end = 0;
    std::uint64_t hash = 0;
  };

  std::span<const ClientId> pattern(const Group& group) const {
    return std::span(patterns_).subspan(group.begin, group.end - group.begin);
  }

  // Returns the group of the pattern at the end of patterns_, from `candidate.begin` on. If an earlier group
  // has the same pattern, the copy at the end is removed.
  std::uint32_t group_of(const Group& candidate) {
    const std::size_t mask = slots_.size() - 1;
    for (std::size_t slot = candidate.hash & mask;; slot = (slot + 1) & mask) {
      if (slots_[slot] == Resolution::kNone) {
        slots_[slot] = static_cast<std::uint32_t>(groups_.size());
        groups_.push_back(candidate);
        return slots_[slot];
      }
      const Group& known = groups_[slots_[slot]];
      if (known.hash != candidate.hash || !std::ranges::equal(pattern(known), pattern(candidate))) continue;
      patterns_.resize(candidate.begin);
      return slots_[slot];
    }
  }

  std::uint32_t add_pattern(std::span<const Exclusion> edges) {
    Group candidate{static_cast<std::uint32_t>(patterns_.size()), 0, 0};
    patterns_.resize(patterns_.size() + edges.size());
    std::size_t end = candidate.begin;
    for (const Exclusion& edge : edges) {
      if (dropped_[edge.client.value()]) continue;
      patterns_[end++] = edge.client;
      // A sum of products, so that multiplications overlap. It must not be linear in the ids, or {1, 4} and
      // {2, 3} would collide. The factor is 2^64 divided by the golden ratio, made odd.
      const std::uint64_t spread = (edge.client.value() + std::uint64_t{1}) * 0x9e3779b97f4a7c15U;
      candidate.hash += spread * (spread >> 32);
    }
    patterns_.resize(end);
    candidate.hash ^= candidate.hash >> 32;  // slots use the lower bits
    candidate.end = static_cast<std::uint32_t>(end);
    return group_of(candidate);
  }

  void group_clients() {
    if (options_.keep_orphan_global) add_pattern({});
    std::size_t next_withdrawn = 0;
    for (std::uint32_t c = 0; c < exclusions_.clients(); ++c) {
      const auto& withdrawn = exclusions_.withdrawn;
      if (next_withdrawn < withdrawn.size() && withdrawn[next_withdrawn].client == ClientId(c))
        ++next_withdrawn;
      else
        out_.track_of_[c] = add_pattern(exclusions_.of(ClientId(c)));
    }
  }

  // Sorts the patterns into tracks and replaces each client's group by its track.
  void order_groups() {
    std::vector<std::uint32_t> order(groups_.size());
    for (std::uint32_t i = 0; i < order.size(); ++i) order[i] = i;
    std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
      return std::ranges::lexicographical_compare(pattern(groups_[a]), pattern(groups_[b]));
    });
    std::vector<std::uint32_t> place(groups_.size());
    for (std::uint32_t i = 0; i < order.size(); ++i) {
      place[order[i]] = i;
      out_.tracks_.push_back(
          {.pattern_begin = groups_[order[i]].begin, .pattern_end = groups_[order[i]].end});
    }
    out_.patterns_ = std::move(patterns_);
    if (options_.strict) index_tracks();
    for (std::uint32_t& track : out_.track_of_)
      if (track != Resolution::kNone) track = place[track];
  }

  // Tracks are sorted by pattern, so tracks whose patterns begin with the same id are neighbours.
  void index_tracks() {
    std::vector<std::uint32_t>& begins = out_.begins_with_;
    begins.assign(out_.clients() + 1, 0);
    for (std::size_t t = 0; t < out_.tracks(); ++t)
      ++begins[out_.pattern(t).empty() ? 0 : out_.pattern(t).front().value() + 1];
    for (std::size_t x = 1; x < begins.size(); ++x) begins[x] += begins[x - 1];
  }

  // Fills owners_ track by track, clients ascending.
  void list_owners() {
    for (const std::uint32_t track : out_.track_of_)
      if (track != Resolution::kNone) ++out_.tracks_[track].owners_end;
    std::uint32_t end = 0;
    for (Resolution::Track& track : out_.tracks_) {
      track.owners_begin = end;
      end += std::exchange(track.owners_end, end);
    }
    out_.owners_.resize(end);
    for (std::uint32_t c = 0; c < out_.track_of_.size(); ++c)
      if (out_.track_of_[c] != Resolution::kNone)
        out_.owners_[out_.tracks_[out_.track_of_[c]].owners_end++] = ClientId(c);
  }

  // Counts the clients whose pattern allows membership, minus those that the track excludes.
  void count_members() {
    for (std::size_t t = 0; t < out_.tracks(); ++t) {
      std::size_t members = out_.clients() - out_.withdrawn_.size();
      if (options_.strict) {
        members = 0;
        for (const std::size_t part : out_.parts(t)) members += out_.owners(part).size();
      }
      for (const ClientId x : out_.pattern(t)) {
        const std::uint32_t own = out_.track_of_[x.value()];
        members -= own != Resolution::kNone && (!options_.strict || out_.covers(t, own));
      }
      out_.tracks_[t].members = static_cast<std::uint32_t>(members);
    }
  }

  const Exclusions& exclusions_;
  const ResolveOptions& options_;
  Resolution out_;
  std::vector<char> dropped_;         // by client: withdrawn and not remembered
  std::vector<ClientId> patterns_;    // of all groups, concatenated
  std::vector<Group> groups_;         // in order of first appearance
  std::vector<std::uint32_t> slots_;  // open addressing: indices into groups_, at most half full
};

Resolution resolve(const Exclusions& exclusions, const ResolveOptions& options) {
  return Resolver(exclusions, options).run();
}

}  // namespace fedge::aggregation
