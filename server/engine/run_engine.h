// RunEngine: the coordinator's decisions for one run, as a pure state machine (core/node.h): what it is
// told, what it wants done, and the rules it keeps. RoundEngine works in synchronous rounds,
// BufferedEngine moves the model whenever enough updates have come. An engine knows no payload:
// fetching, folding, aggregating and evaluating are effects that a shell carries out, the same effects
// in the coordinator daemon and in the simulator.
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
#include "core/event.h"
#include "core/ids.h"
#include "core/node.h"
#include "core/node_record.h"
#include "protocol/codecs/payload_codec.h"
#include "protocol/messages.h"
#include "server/engine/track_book.h"

namespace fedge::server {

struct RoundRules {
  RunId run;
  Digest layout{};               // of the model
  std::uint32_t chunk_size = 0;  // bytes; of it and of updates
  std::size_t parameters = 0;    // in the model
  std::uint32_t rounds = 1;
  std::size_t clients_per_round = 1;
  double over_selection = 1.0;  // ask ceil(clients_per_round * this), close at clients_per_round answers
  std::size_t first_round_clients = 1;  // wait for this many clients before the first round
  std::size_t min_available = 1;        // and for this many before each later one
  Duration deadline{};                  // of one round
  // After a restart clients have so long to come back before others take their places.
  Duration return_within{};
  SampleCount max_samples;            // largest weight one update may claim
  std::size_t classes = SIZE_MAX;     // of the data: what a client says of more labels is not heard
  bool uniform_weights = false;       // the aggregator weighs every update alike
  std::uint64_t local_epochs = 1;     // of the clients, and
  std::uint64_t batch_size = 1;       // theirs: no update has more steps than these make of its samples, or
  std::uint64_t local_steps = 0;      // if that is not 0, than this
  protocol::Compression compression;  // that updates must come in
  // Updates are summed in secret, and come masked, in this codec.
  std::optional<protocol::Codec> masked = {};
  // Turns of a track that a privacy budget allows; without one: any number.
  std::optional<std::uint64_t> releases = {};
  // Rounds of the run that a client may have a part in, and rounds between two such, at least.
  std::uint64_t max_participations = UINT64_MAX;
  std::uint64_t min_separation = 0;
  // Where who is in a round is drawn from, in a run whose privacy rests on nobody knowing it; null elsewhere:
  // then it follows from the run's seed.
  std::shared_ptr<const Secret> secret_draws = {};
};

// What a client says of itself, as far as the run's data has such labels.
inline NodeRecord with_known_labels(const RoundRules& rules, NodeRecord record) {
  if (record.labels.size() > rules.classes) record.labels.resize(rules.classes);
  return record;
}

class RunEngine {
 public:
  // --- inputs ---
  // It is connected and has what the run needs.
  struct ClientArrived {
    ClientId client;
    SampleCount samples;    // that it says it trains on
    double capability = 1;  // share of the model that it says it can train
    // It counts as so many samples at most, whatever it says.
    SampleCount most = SampleCount(UINT64_MAX);
  };
  struct ClientLeft {
    ClientId client;
    bool for_good = false;  // it has been revoked: nobody waits for it
  };
  // What an enrolled client says about itself in the directory; it need not be connected.
  struct Described {
    ClientId client;
    NodeRecord record;
  };
  struct Offered {
    ClientId client;
    protocol::UpdateOffer offer;
  };
  // The offered payload is here, its hashes and every value checked.
  struct Stored {
    ClientId client;
    TaskId task;
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
  // CloseRound has been carried out.
  struct Committed {
    RoundNumber round;
    TrackId track;
  };
  // Who disagrees with whom from the next round on.
  struct PolicyChanged {
    aggregation::Policy policy;
  };
  struct Stop {
    std::string reason;
  };
  // The coordinator was gone and is back, and with it no client yet; the clock goes on from where it stood.
  // What was stored is here; who had work may come back to it.
  struct Restarted {};
  using Input = std::variant<Expired, ClientArrived, ClientLeft, Described, Offered, Stored, Damaged, Failed,
                             Committed, PolicyChanged, Stop, Restarted>;

  // --- effects ---
  // A model of its own begins as this track's, or anew if there is none: from now on there is one more to
  // train, with nothing remembered from before.
  struct StartTrack {
    TrackId track;
    std::optional<TrackId> source;
    std::shared_ptr<const TrackDescription> description;
  };
  // Nobody trains or uses this track's model any more.
  struct RetireTrack {
    TrackId track;
  };
  // The turn's updates are summed in secret: whatever has been folded of it before counts no more, and these
  // clients, who are assigned next, agree on masks. Who can take no part comes back as Failed.
  struct BeginSecure {
    struct Member {
      ClientId client;
      Coverage coverage;  // that it is to train
    };
    TaskId task;
    std::uint32_t attempt = 1;    // at this turn
    std::vector<Member> members;  // ascending
  };
  // Send a TrainRequest for the track's model with these ranges.
  struct Assign {
    ClientId client;
    TaskId task;  // names the task for this client
    Coverage coverage;
    Duration time_left;
    RoundNumber last_round;            // its last task for this track whose update was accepted, 0 for none
    double data_share = 1;             // of its samples, to be trained on
    bool again = false;                // whoever has the task in hand from before goes on with it
    std::uint32_t secure_attempt = 0;  // of the turn's BeginSecure; 0: there was none
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
  // Put the stored update into the aggregate of the task's track.
  struct Fold {
    ClientId client;
    TaskId task;
    SampleCount weight;
    std::uint64_t steps = 1;
    double factor = 1;  // its values count this many times
  };
  // Let an update that will not be fetched count in the aggregate as one of zeros.
  struct Count {
    ClientId client;
    TaskId task;
    SampleCount weight;
    Coverage coverage;
  };
  // Forget whatever was fetched or is being fetched of this client's update.
  struct Discard {
    ClientId client;
    TaskId task;
  };
  // It has not come back from before a restart: it is expected no more, though it may still come.
  struct GiveUp {
    ClientId client;
  };
  // Apply the aggregate to the track's model, evaluate, store; answer with Committed.
  struct CloseRound {
    RoundNumber round;
    std::size_t selected;
    std::size_t completed;
    double train_loss;
    TrackId track;
    bool ends_round = true;  // no other track's turn follows in this round
    // The largest with which a client was drawn by itself, whoever the others were; 1 if it was not so.
    double chance = 1;
    // Null in a run without disagreements.
    std::shared_ptr<const TrackDescription> description;
    // With a description: the clients that `selected` and `completed` count, for totals over the round's
    // tracks.
    std::vector<ClientId> selected_clients = {};
    std::vector<ClientId> completed_clients = {};
  };
  struct Finished {
    std::string reason;
  };
  using Effect = std::variant<StartTrack, RetireTrack, BeginSecure, Assign, Send, Fetch, Fold, Count, Discard,
                              GiveUp, CloseRound, Finished, Event>;

  virtual ~RunEngine() = default;
  virtual void step(const Input& input, const StepContext& context, std::vector<Effect>& effects) = 0;
  virtual std::optional<Time> next_deadline() const = 0;
  // The round in progress, or the last one; of a buffered run, the buffer that is being filled.
  virtual RoundNumber round() const = 0;
};

}  // namespace fedge::server
