// What a policy means in one round: who must not influence whom (Exclusions, the normal form), and the
// models that are trained side by side so that it holds (Resolution, the tracks). Rosendal and Oprescu,
// arXiv:2604.23386, as cleaned up from their public code. Pure and immutable: no thread rule. The same
// disagreements in any order give the same tracks.
//
//   V  all clients, 0 .. n - 1          F  withdrawn clients (kind full)
//   E(c)  clients that must not influence c's model
//   pattern of c  E(c) \ F, for c not in F. Whoever shares a pattern shares a track and owns it:
//                 it is the model that they use themselves.
//   members of a track with pattern e   V \ F \ e: those who train it, be it theirs or not
//
// A client that excludes itself does not train its own track, and a track that excludes everybody has no
// member and keeps its initial model.
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
  // What this client contributed from this round on must not count: the round in which the earliest of the
  // disagreements behind it began, or 1, never anything, if one of them is deep.
  RoundNumber since;
  auto operator<=>(const Exclusion&) const = default;
};

// The normal form of a round. 8 bytes an exclusion, 4 a client.
struct Exclusions {
  std::vector<std::uint32_t> offsets;  // n + 1: where each client's exclusions are in `edges`
  std::vector<Exclusion> edges;        // each client's ascending, each excluded client once
  std::vector<Exclusion> withdrawn;    // F, ascending; `since` as above

  std::size_t clients() const { return offsets.size() - 1; }
  // E(c), ascending; also of a withdrawn client.
  std::span<const Exclusion> of(ClientId c) const {
    return std::span(edges).subspan(offsets[c.value()], offsets[c.value() + 1] - offsets[c.value()]);
  }
};

// The disagreements that are active in the round, as exclusions: inbound (c, x) puts x into E(c), outbound c
// into E(x), bidirectional both, full c into F. O(disagreements + edges), and where a client's edges do not
// come in ascending order, the time to sort them.
Exclusions exclusions_in(const Policy& policy, RoundNumber round);

struct ResolveOptions {
  // A client is a member of a track only if, besides, its own pattern is a subset of the track's. Members
  // receive the track's model, so without this a client may be sent a model that somebody whom it excludes
  // trains as well (though its own track never learns of it); with it, never. Owners that do not exclude
  // themselves are members either way.
  bool strict = false;
  // The track with the empty pattern is there even if nobody owns it, as in the authors' code.
  bool keep_orphan_global = false;
  // Withdrawn clients, ascending, that stay in the patterns: models may still carry what they
  // contributed before. The others are dropped from patterns, so that whoever excludes only them shares the
  // track of those who exclude nobody. Who is not withdrawn is ignored here.
  std::span<const ClientId> remembered = {};
};

// The tracks of a round, counted from 0 in the lexicographic order of their patterns, so that the one that
// excludes nobody is the first if it is there. Members are not stored: 4 bytes an id of a pattern, 8 a
// client.
class Resolution {
 public:
  std::size_t tracks() const { return tracks_.size(); }
  std::size_t clients() const { return track_of_.size(); }
  std::span<const ClientId> withdrawn() const { return withdrawn_; }  // ascending
  // Ascending.
  std::span<const ClientId> pattern(std::size_t track) const;
  std::span<const ClientId> owners(std::size_t track) const;
  // The track that the client owns: the model it uses itself. None if it is withdrawn.
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

  // Whether the other's pattern is a subset of the track's.
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

// O(clients + edges), besides sorting the patterns that differ; if strict, also comparing each pattern with
// those that begin with one of its ids.
Resolution resolve(const Exclusions& exclusions, const ResolveOptions& options = {});

}  // namespace fedge::aggregation
