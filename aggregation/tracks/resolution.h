// Resolves a policy for one round: which client must not influence which (Exclusions, the normal form), and
// the models that are trained side by side to guarantee this (Resolution, the tracks). Rosendal and Oprescu,
// arXiv:2604.23386, corrected from their public code. Pure and immutable: no thread rule. The order of the
// disagreements does not change the tracks.
//
//   V  all clients, 0 .. n - 1          F  withdrawn clients (kind full)
//   E(c)  clients that must not influence c's model
//   pattern of c  E(c) \ F, for c not in F. Clients with the same pattern own one track together:
//                 its model is the one that they use.
//   members of a track with pattern e   V \ F \ e: the clients that train it, owners or not
//
// A client that excludes itself does not train its own track. A track that excludes all clients has no member
// and keeps its initial model.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "aggregation/tracks/policy.h"
#include "core/ids.h"

namespace fedge::aggregation {

struct Exclusion {
  ClientId client;
  // Contributions of this client from this round on must not count: the first round of the earliest
  // disagreement behind the exclusion, or 1 (all contributions) if one of them is deep.
  RoundNumber since;
  auto operator<=>(const Exclusion&) const = default;
};

// The normal form of a round. 8 bytes an exclusion, 4 a client.
struct Exclusions {
  std::vector<std::uint32_t> offsets;  // n + 1: start of each client's exclusions in `edges`
  std::vector<Exclusion> edges;        // ascending for each client, each excluded client once
  std::vector<Exclusion> withdrawn;    // F, ascending; `since` as above

  std::size_t clients() const { return offsets.size() - 1; }
  // E(c), ascending; defined for withdrawn clients too.
  std::span<const Exclusion> of(ClientId c) const {
    return std::span(edges).subspan(offsets[c.value()], offsets[c.value() + 1] - offsets[c.value()]);
  }
};

// Returns the round's active disagreements as exclusions: inbound (c, x) puts x into E(c), outbound c into
// E(x), bidirectional both, full c into F. O(disagreements + edges), plus the time to sort edges that do not
// arrive in ascending order.
Exclusions exclusions_in(const Policy& policy, RoundNumber round);

struct ResolveOptions {
  // Membership also requires that the client's own pattern is a subset of the track's. Members receive the
  // track's model. Without this option, a client may receive a model that a client it excludes helped to
  // train (its own track never uses it); with it, never. Owners that do not exclude themselves are members
  // either way.
  bool strict = false;
  // Keeps the track with the empty pattern even without owners, as in the authors' code.
  bool keep_orphan_global = false;
  // Withdrawn clients, ascending, that stay in the patterns because models may still contain their earlier
  // contributions. Other withdrawn clients are dropped from patterns: a client that excludes only them joins
  // the track that excludes no client. Clients that are not withdrawn are ignored here.
  std::span<const ClientId> remembered = {};
};

// The tracks of a round, counted from 0 in the lexicographic order of their patterns. The track that excludes
// no client, if present, is the first. Members are computed, not stored. Memory: 4 bytes an id of a pattern,
// 8 a client.
class Resolution {
 public:
  std::size_t tracks() const { return tracks_.size(); }
  std::size_t clients() const { return track_of_.size(); }
  std::span<const ClientId> withdrawn() const { return withdrawn_; }  // ascending
  // Ascending.
  std::span<const ClientId> pattern(std::size_t track) const;
  std::span<const ClientId> owners(std::size_t track) const;
  // The track that the client owns: its model is the one the client uses. None if it is withdrawn.
  std::optional<std::size_t> primary(ClientId client) const;

  // O(|pattern|).
  bool is_member(std::size_t track, ClientId client) const;
  std::size_t member_count(std::size_t track) const { return tracks_[track].members; }
  // Ascending. O(clients), if strict O(tracks + members) at most.
  std::vector<ClientId> members(std::size_t track) const;
  // Trainings of one round: the sum of all member counts.
  std::uint64_t load() const;

 private:
  friend class Resolver;
  static constexpr std::uint32_t kNone = UINT32_MAX;
  struct Track {
    std::uint32_t pattern_begin = 0;  // in patterns_
    std::uint32_t pattern_end = 0;
    std::uint32_t owners_begin = 0;  // in owners_
    std::uint32_t owners_end = 0;
    std::uint32_t members = 0;
  };

  // True if the pattern of `other` is a subset of the pattern of `track`.
  bool covers(std::size_t track, std::size_t other) const;
  std::vector<std::size_t> parts(std::size_t track) const;

  bool strict_ = false;
  std::vector<Track> tracks_;
  std::vector<ClientId> patterns_;
  std::vector<ClientId> owners_;
  std::vector<std::uint32_t> track_of_;  // by client; kNone if it is withdrawn
  std::vector<ClientId> withdrawn_;
  // If strict, the tracks whose patterns begin with id x: from begins_with_[x] to before begins_with_[x + 1].
  std::vector<std::uint32_t> begins_with_;
};

// O(clients + edges), plus sorting the distinct patterns; if strict, plus comparing each pattern with the
// patterns that begin with one of its ids.
Resolution resolve(const Exclusions& exclusions, const ResolveOptions& options = {});

}  // namespace fedge::aggregation
