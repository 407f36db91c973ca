// RunEngine: the coordinator's decisions for one run, as a pure state machine (core/node.h) with its inputs,
// effects and rules. RoundEngine works in synchronous rounds, BufferedEngine whenever enough updates have
// arrived. An engine handles no payloads: I/O adapters fetch, fold and evaluate, as its effects say.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "aggregation/spec.h"
#include "aggregation/tracks/policy.h"
#include "core/crypto/secret.h"
#include "core/energy/power.h"
#include "core/energy/reported_energy.h"
#include "core/event.h"
#include "core/ids.h"
#include "core/node.h"
#include "core/node_record.h"
#include "core/result.h"
#include "protocol/codecs/payload_codec.h"
#include "protocol/messages.h"
#include "server/engine/participations.h"
#include "server/engine/sums/sums_rules.h"
#include "server/engine/track_book.h"

namespace fedge::server {

struct RoundRules {
  RunId run;
  Digest layout{};               // of the model
  std::uint32_t chunk_size = 0;  // bytes, of the model and of updates
  std::size_t parameters = 0;    // in the model
  std::uint32_t rounds = 1;
  std::size_t clients_per_round = 1;
  double over_selection = 1.0;  // ask ceil(clients_per_round * this), close at clients_per_round answers
  std::size_t first_round_clients = 1;         // wait for this many clients before the first round
  std::size_t min_available = 1;               // and for this many before each later one
  Duration deadline{};                         // of one round
  Duration return_within{};                    // after a restart, before others take the places of clients
  SampleCount max_samples;                     // largest weight one update may claim
  std::size_t classes = SIZE_MAX;              // of the data; records about further labels are cut
  bool uniform_weights = false;                // the aggregator weighs every update alike
  std::uint64_t local_epochs = 1;              // with batch_size, bounds an update's steps by its samples
  std::uint64_t batch_size = 1;                // of the clients
  std::uint64_t local_steps = 0;               // if not 0, this bounds an update's steps instead
  protocol::Compression compression;           // required format of updates
  std::optional<protocol::Codec> masked = {};  // of masked updates; empty: no secure sums
  // Track phases that the privacy budget allows; empty: no limit.
  std::optional<std::uint64_t> releases = {};
  // Maximum number of rounds with a client, and minimum number of rounds between two of them.
  std::uint64_t max_participations = UINT64_MAX;
  std::uint64_t min_separation = 0;
  Quarantine::Rule quarantine = {};  // of clients whose tasks fail; a round has at least
  std::size_t min_candidates = 1;    // so many candidates, else also those in quarantine
  // Key of the draws of a round's clients, in a run whose privacy requires secret draws; elsewhere null.
  std::shared_ptr<const Secret> secret_draws = {};
  std::optional<EvaluationRules> evaluation = {};  // empty: clients evaluate no models
  std::optional<StatisticsRules> statistics = {};  // empty: clients do not count their values
  bool overlaps = false;  // clients train for the next round while their updates are under way
};

// Returns the client's record without labels that the run's data does not have.
inline NodeRecord with_known_labels(const RoundRules& rules, NodeRecord record) {
  if (record.labels.size() > rules.classes) record.labels.resize(rules.classes);
  return record;
}

class RunEngine {
 public:
  // --- inputs ---
  // The client is connected and has what the run needs.
  struct ClientArrived {
    ClientId client;
    SampleCount samples;                            // that it claims to train on
    double capability = 1;                          // fraction of the model that it claims it can train
    SampleCount most = SampleCount(UINT64_MAX);     // maximum weight, whatever the client claims
    SampleCount evaluates{};                        // samples that it claims to evaluate on; 0: none
    std::shared_ptr<const DevicePower> power = {};  // its description of its device; null: none
  };
  struct ClientLeft {
    ClientId client;
    bool for_good = false;  // it was revoked: do not wait for it
  };
  // A client's published record; the client need not be connected.
  struct Described {
    ClientId client;
    NodeRecord record;
  };
  struct Offered {
    ClientId client;
    protocol::UpdateOffer offer;
  };
  // The offered payload is stored; its hashes and all values have been checked.
  struct Stored {
    ClientId client;
    TaskId task;
    std::optional<protocol::UpdateOffer> reported = {};  // by the client, if the offer had no report yet
  };
  struct Damaged {
    ClientId client;
    TaskId task;
    Error error;
  };
  struct Failed {
    ClientId client;
    protocol::TaskFailed failure;
  };
  // The CloseRound effect has been carried out.
  struct Committed {
    RoundNumber round;
    TrackId track;
    TaskKind kind = TaskKind::kTraining;
    bool made = true;   // statistics: the step has a result
    bool ends = false;  // the evaluation of the round ends the run (run.stop_when)
    TaskId task() const { return {round, track, kind}; }
  };
  struct PolicyChanged {
    aggregation::Policy policy;  // of disagreements, from the next round on
  };
  struct Stop {
    std::string reason;
  };
  // The coordinator has restarted. Stored updates exist; no client is connected yet.
  struct Restarted {};
  using Input = std::variant<Expired, ClientArrived, ClientLeft, Described, Offered, Stored, Damaged, Failed,
                             Committed, PolicyChanged, Stop, Restarted>;

  // --- effects ---
  // Create this track's model, a copy of the source's or the initial one, without optimizer state.
  struct StartTrack {
    TrackId track;
    std::optional<TrackId> source;
    std::shared_ptr<const TrackDescription> description;
  };
  // Delete this track's model.
  struct RetireTrack {
    TrackId track;
  };
  // Start a secure sum of the phase's updates and drop what was folded before. The members are assigned
  // next and exchange keys. A member that cannot take part comes back as Failed.
  struct BeginSecure {
    struct Member {
      ClientId client;
      Coverage coverage;  // parameters that it trains
    };
    TaskId task;
    std::uint32_t attempt = 1;    // number of the attempt at this phase
    std::vector<Member> members;  // ascending
    std::size_t task_sums = 0;    // of evaluations and statistics; they are masked with the rest
  };
  // Send a TrainRequest for the track's model.
  struct Assign {
    ClientId client;
    TaskId task;  // identifies the task for this client
    Coverage coverage;
    Duration time_left;
    RoundNumber last_round;            // last accepted task of this track, 0 for none
    double data_share = 1;             // fraction of its samples to train on
    bool again = false;                // a client that still has the task continues it
    std::uint32_t secure_attempt = 0;  // attempt of BeginSecure; 0: no secure sum
    Coverage next = {};                // of its next task, if it is known; else empty
    Effort effort = {};                // what the planner asks of the device besides
  };
  struct Send {
    ClientId client;
    protocol::Message message;
  };
  // Fetch the offered update and answer with Stored or Damaged.
  struct Fetch {
    ClientId client;
    protocol::UpdateOffer offer;
  };
  // Add the stored update to the aggregate of the task's track.
  struct Fold {
    ClientId client;
    TaskId task;
    SampleCount weight;
    std::uint64_t steps = 1;
    double factor = 1;  // multiplies its values
    double loss = 0;    // as offered
  };
  // Count an update that will not be fetched as zeros in the aggregate.
  struct Count {
    ClientId client;
    TaskId task;
    SampleCount weight;
    Coverage coverage;
  };
  // Discard what was fetched, or is being fetched, of this client's update.
  struct Discard {
    ClientId client;
    TaskId task;
  };
  // Stop waiting for this client, which did not return after a restart; it may still return.
  struct GiveUp {
    ClientId client;
  };
  // Apply the aggregate to the track's model, evaluate, store; answer with Committed. Of evaluations and
  // statistics, take up the clients' sums; the model stays.
  struct CloseRound {
    RoundNumber round;
    std::size_t selected;
    std::size_t completed;
    double train_loss;
    TrackId track;
    bool ends_round = true;  // this is the round's last track phase
    // Largest probability with which a client was drawn; 1 if draws were not independent.
    double chance = 1;
    std::shared_ptr<const TrackDescription> description;  // null in a run without tracks
    // With a description: the clients that `selected` and `completed` count.
    std::vector<ClientId> selected_clients = {};
    std::vector<ClientId> completed_clients = {};
    TaskKind kind = TaskKind::kTraining;
    std::vector<ClientSums> sums = {};  // of evaluations or statistics; empty if they are masked
    double activation_correlation = 0;  // split training: the largest of the clients'
    ReportedEnergy energy = {};

    TaskId task() const { return {round, track, kind}; }
  };
  struct Finished {
    std::string reason;
    std::vector<ClientId> connected;  // clients that are told
  };
  using Effect = std::variant<StartTrack, RetireTrack, BeginSecure, Assign, Send, Fetch, Fold, Count, Discard,
                              GiveUp, CloseRound, Finished, Event>;

  // The next round needs more clients than are ready.
  struct Waiting {
    RoundNumber round;
    std::size_t clients;
    std::size_t needed;
    bool operator==(const Waiting&) const = default;
  };

  virtual ~RunEngine() = default;
  virtual void step(const Input& input, const StepContext& context, std::vector<Effect>& effects) = 0;
  // Calls step(). kInvalid if a sampler that the program registered has failed (aggregation/own_parts.h); the
  // engine is then of no more use.
  Result<void> try_step(const Input& input, const StepContext& context, std::vector<Effect>& effects);
  virtual std::optional<Time> next_deadline() const = 0;
  // Returns the current round or the last one; in a buffered run, the number of the buffer being filled.
  virtual RoundNumber round() const = 0;
  // Nothing if no client is missing.
  virtual std::optional<Waiting> waiting() const = 0;
};

}  // namespace fedge::server
