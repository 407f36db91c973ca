// TrackBook: the models (tracks) that a run trains side by side because some clients must not influence
// others, and the members of each. Each track has a separate model, sampler and planner, so nothing that an
// excluded client sends can influence the track. Tracks still share clients and time: an excluded client
// can delay a track by being slow, which may change who is connected. The tracks of a round follow from the
// policy (aggregation/tracks/resolution.h), the contributors of each model from the ledger
// (aggregation/tracks/taint_ledger.h). A new track starts from the most trained model that the ledger
// permits, its owners' former model first, else from the initial model. Rosendal and Oprescu,
// arXiv:2604.23386; docs/algorithms/tracks.md. Pure, deterministic. Cost of a round: O(1) without
// disagreements, else that of resolve() plus O(tracks * pattern), and as much again for each new track that
// cannot continue its owners' former model.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "aggregation/planners/planner.h"
#include "aggregation/samplers/sampler.h"
#include "aggregation/tracks/policy.h"
#include "aggregation/tracks/resolution.h"
#include "aggregation/tracks/taint_ledger.h"
#include "core/ids.h"
#include "server/engine/track_description.h"

namespace fedge::server {

// Selects a track's clients and the parts of the model that they train.
struct Deciders {
  std::unique_ptr<aggregation::Sampler> sampler;
  std::unique_ptr<aggregation::Planner> planner;
};

struct Track {
  TrackId id;
  Deciders deciders;
  aggregation::SamplerTraits traits;
  std::vector<ClientId> pattern;                        // excluded clients, ascending
  std::map<ClientId, RoundNumber> last_rounds;          // last round with an accepted update
  std::map<ClientId, RoundNumber> returned;             // round in which a client (re)joined
  std::vector<ClientId> left;                           // members of the last round that left
  std::uint32_t age = 0;                                // rounds of training behind its model
  std::shared_ptr<const TrackDescription> description;  // null in a run without tracks

  // 0: no update of this client was accepted.
  RoundNumber last_round(ClientId client) const {
    const auto last = last_rounds.find(client);
    return last == last_rounds.end() ? RoundNumber() : last->second;
  }
};

class TrackBook {
 public:
  struct Options {
    // Number of rounds over which the weight of a client grows back to its full value after its
    // disagreement ends; 0: at once.
    std::uint32_t lifting_rounds = 0;
  };
  // Calls `make` for each track.
  TrackBook(aggregation::Policy policy, std::function<Deciders()> make, const Options& options);

  // Replaces the policy from the next round on. A new disagreement starts at that round at the earliest,
  // unless it is deep.
  void adopt(aggregation::Policy policy);

  struct Start {
    TrackId track;
    std::optional<TrackId> source;  // its model is copied; none: the initial model
    std::shared_ptr<const TrackDescription> description;
  };
  struct Changes {
    std::vector<Start> started;  // carry out in this order, before `retired`
    std::vector<TrackId> retired;
    bool joined = false;  // a track may have new members; always true if one is new
  };
  // Starts a round; round numbers must ascend. Before the first round there is only track 0, with the
  // initial model.
  Changes begin_round(RoundNumber round);

  // Returns how many track numbers, including 0, the policy uses in the first `rounds` rounds.
  std::size_t tracks_within(std::uint32_t rounds) const;

  // The tracks of the round, in the order of their phases.
  std::size_t turns() const { return tracks_.size(); }
  Track& turn(std::size_t index) { return tracks_[index]; }
  const Track& turn(std::size_t index) const { return tracks_[index]; }
  // Whether every client is a member of every track: the run has one model.
  bool is_whole() const { return !resolution_; }
  bool is_member(std::size_t turn, ClientId client) const {
    return !resolution_ || resolution_->is_member(turn, client);
  }
  // Returns the clients that take no part in `round`, which may be a future round.
  std::set<ClientId> withdrawn_in(RoundNumber round) const;
  // Returns whether no client that `client` excludes has contributed to this track's model since the
  // exclusion. Always true for the client's own track.
  bool is_clean(std::size_t turn, ClientId client) const;
  // Returns whether the client may receive this track's model.
  bool may_receive(std::size_t turn, ClientId client) const;
  // Returns the fraction of its samples that a client trains on, in (0, 1].
  double data_share(ClientId client) const;
  // Returns the weight with which an update of this many samples counts.
  SampleCount weight(std::size_t turn, ClientId client, SampleCount samples) const;
  // Records that the client contributed to this track's model.
  void contributed(std::size_t turn, ClientId client);

 private:
  aggregation::Exclusions exclusions(RoundNumber round) const;
  std::vector<ClientId> remembered(std::span<const aggregation::Exclusion> withdrawn) const;
  std::optional<std::size_t> find(std::span<const ClientId> pattern) const;
  // Returns whether the track's model satisfies all these exclusions.
  bool permits(TrackId model, std::span<const aggregation::Exclusion> demand) const;
  // Returns the owners' demands on their track's past: for each client of its pattern, the first round from
  // which it must not have contributed.
  std::vector<aggregation::Exclusion> demand_of(const aggregation::Resolution& resolution,
                                                std::size_t track) const;
  // Returns the indices of the tracks whose models a new track may start from, most trained first. Models
  // with contributions of clients that withdrew all of them are left out.
  std::vector<std::size_t> sources() const;
  std::optional<std::size_t> choose_source(std::span<const ClientId> owners,
                                           std::span<const aggregation::Exclusion> demand,
                                           std::span<const std::size_t> sources) const;
  void note_returns(Track& track, const aggregation::Resolution& resolution, std::size_t now,
                    std::size_t before) const;
  // Returns the clients that were members of the track in the round before, when its index was `before`,
  // and are not now.
  std::vector<ClientId> leavers(const aggregation::Resolution& resolution, std::size_t now,
                                std::size_t before) const;
  Track new_track(TrackId id, std::vector<ClientId> pattern) const;

  aggregation::Policy policy_;
  std::vector<aggregation::Disagreement> as_given_;  // policy_'s entries before adopt() changed them
  std::function<Deciders()> make_;
  Options options_;
  RoundNumber round_;
  std::uint32_t counted_ = 0;  // last track number used
  std::vector<Track> tracks_;  // sorted by pattern
  aggregation::TaintLedger ledger_;
  aggregation::Exclusions exclusions_;
  bool strict_ = false;                                // in round_; policy_ may differ
  std::optional<aggregation::Resolution> resolution_;  // of round_, same order as tracks_; none: one model
  std::map<ClientId, double> withheld_;                // fraction of samples that each client withholds
};

}  // namespace fedge::server
