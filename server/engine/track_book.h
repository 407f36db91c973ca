// TrackBook: which models a run trains side by side, because some clients must not influence others, and who
// may have a part in which. Each track has a model, a sampler and a planner of its own, so that nothing that
// an excluded client sends or says can steer a track that excludes it. (Tracks share clients and time: by
// being slow it can delay them, and where clients come and go, that may change who is there.) The tracks of a
// round follow from the policy (aggregation/tracks/resolution.h); what each model has been touched by, from
// the ledger (aggregation/tracks/taint_ledger.h). One rule decides where a new track's model comes from: the
// furthest trained model that the ledger permits, its owners' former one before others, else the initial
// model. Rosendal and Oprescu, arXiv:2604.23386; docs/algorithms/tracks.md. Pure, deterministic. Cost of a
// round: O(1) without disagreements, else that of resolve() and O(tracks * pattern) more; for each track that
// begins and may not go on from its owners' former model, another O(tracks * pattern).
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

// Who takes part in a track, and in what.
struct Deciders {
  std::unique_ptr<aggregation::Sampler> sampler;
  std::unique_ptr<aggregation::Planner> planner;
};

struct Track {
  TrackId id;
  Deciders deciders;
  aggregation::SamplerTraits traits;
  std::vector<ClientId> pattern;                        // who must not have a part in it, ascending
  std::map<ClientId, RoundNumber> last_rounds;          // of those with an accepted update: the last one
  std::map<ClientId, RoundNumber> returned;             // since when a client has a part in it again
  std::vector<ClientId> left;                           // members of the round before that are none now
  std::uint32_t age = 0;                                // rounds of training behind its model
  std::shared_ptr<const TrackDescription> description;  // null in a run without disagreements
};

class TrackBook {
 public:
  struct Options {
    // Over so many rounds the weight of a client whose disagreement has ended grows to what it is; 0: at
    // once.
    std::uint32_t lifting_rounds = 0;
  };
  // `make` is asked for the deciders of each track.
  TrackBook(aggregation::Policy policy, std::function<Deciders()> make, const Options& options);

  // From the next round on. A disagreement that was not there before begins with that round at the earliest,
  // unless it is deep.
  void adopt(aggregation::Policy policy);

  struct Start {
    TrackId track;
    std::optional<TrackId> source;  // whose model it begins as; none: the initial one
    std::shared_ptr<const TrackDescription> description;
  };
  struct Changes {
    std::vector<Start> started;  // to be carried out in this order, before
    std::vector<TrackId> retired;
    bool joined = false;  // some track may have members that it had not before; always so of a new one
  };
  // Round numbers ascend. Before the first there is track 0 alone, with the initial model.
  Changes begin_round(RoundNumber round);

  // How many track numbers the policy takes in so many rounds, 0 included.
  std::size_t tracks_within(std::uint32_t rounds) const;

  // The tracks of the round, in the order of their turns.
  std::size_t turns() const { return tracks_.size(); }
  Track& turn(std::size_t index) { return tracks_[index]; }
  const Track& turn(std::size_t index) const { return tracks_[index]; }
  bool is_member(std::size_t turn, ClientId client) const;
  // Who takes no part in this round at all, be it the one to come.
  std::set<ClientId> withdrawn_in(RoundNumber round) const;
  // Whether nobody whom the client excludes has touched the model of this track since; always so of its own.
  bool is_clean(std::size_t turn, ClientId client) const;
  // Whether the client may be sent this track's model.
  bool may_receive(std::size_t turn, ClientId client) const;
  // Share of its samples that a client trains on, in (0, 1].
  double data_share(ClientId client) const;
  // What an update of this weight counts.
  SampleCount weight(std::size_t turn, ClientId client, SampleCount samples) const;
  // The client has had a part in what this track's model becomes.
  void contributed(std::size_t turn, ClientId client);

 private:
  aggregation::Exclusions exclusions(RoundNumber round) const;
  std::vector<ClientId> remembered(std::span<const aggregation::Exclusion> withdrawn) const;
  std::optional<std::size_t> find(std::span<const ClientId> pattern) const;
  // Whether the model of this track has been left alone by these clients as long as they demand.
  bool permits(TrackId model, std::span<const aggregation::Exclusion> demand) const;
  // What the owners demand of their track's past: for each client of its pattern the first round from which
  // on it must have had no part.
  std::vector<aggregation::Exclusion> demand_of(const aggregation::Resolution& resolution,
                                                std::size_t track) const;
  // Places of the tracks whose models may be gone on from, the best first: those that have been left alone by
  // all who have withdrawn with everything that they gave.
  std::vector<std::size_t> sources() const;
  std::optional<std::size_t> choose_source(std::span<const ClientId> owners,
                                           std::span<const aggregation::Exclusion> demand,
                                           std::span<const std::size_t> sources) const;
  void note_returns(Track& track, const aggregation::Resolution& resolution, std::size_t now,
                    std::size_t before) const;
  // Members of a track in the round before, as whose number `before` it then was, that are none now.
  std::vector<ClientId> leavers(const aggregation::Resolution& resolution, std::size_t now,
                                std::size_t before) const;
  Track new_track(TrackId id, std::vector<ClientId> pattern) const;

  aggregation::Policy policy_;
  std::vector<aggregation::Disagreement> as_given_;  // of policy_, before adopt() moved their first rounds
  std::function<Deciders()> make_;
  Options options_;
  RoundNumber round_;
  std::uint32_t counted_ = 0;  // track numbers handed out, but for 0
  std::vector<Track> tracks_;  // sorted by pattern
  aggregation::TaintLedger ledger_;
  aggregation::Exclusions exclusions_;
  bool strict_ = false;                                // in round_: the policy may have changed meanwhile
  std::optional<aggregation::Resolution> resolution_;  // of round_; its tracks are tracks_. None: one for all
  std::map<ClientId, double> withheld_;                // shares of samples
};

}  // namespace fedge::server
