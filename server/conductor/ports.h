// The ports of a Conductor: what it asks of the world. The coordinator implements them with links, threads,
// disks and a journal, the simulator with an event heap. A port decides nothing. All functions are called on
// the conductor's thread; results come back through the conductor's inputs, at once or later.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "core/crypto/ed25519.h"
#include "core/event.h"
#include "core/ids.h"
#include "core/result.h"
#include "privacy/secure_aggregation/server.h"
#include "protocol/chunks/manifest.h"
#include "protocol/messages.h"
#include "server/conductor/track_view.h"
#include "server/conductor/watch.h"
#include "server/engine/run_engine.h"
#include "swarm/chunk_set.h"
#include "swarm/warmup/round_warmup.h"

namespace fedge::server {

class Decision;

// The connections of the run's clients.
class Clients {
 public:
  virtual ~Clients() = default;
  // Returns whether the client is connected and its key is still admitted.
  virtual bool connected(ClientId client) const = 0;
  // Returns the node key of a connected client.
  virtual PublicKey key_of(ClientId client) const = 0;
  // Returns the labels that operators gave to a connected client; nothing if they are not known yet. Called
  // only if the run selects by them.
  virtual std::optional<std::vector<std::string>> labels_of(ClientId) const { return std::nullopt; }
  // Sends to a connected client, in the order of the calls; does nothing for any other.
  virtual void send(ClientId client, const protocol::Message& message) = 0;
};

// The transfer of models to clients, from the coordinator or through a swarm.
class Models {
 public:
  virtual ~Models() = default;
  // The client needs the models of its former task, if any, no longer.
  virtual void release(ClientId client) = 0;
  // The client may fetch the models of this task. Called after release(). `round` is the engine's.
  virtual void give(const RunEngine::Assign& work, RoundNumber round) = 0;
  // The client needs the models of this task no longer. Does nothing if another task has followed.
  virtual void take_back(ClientId client, TaskId task) = 0;
};

// The transfer of updates to the coordinator.
class Updates {
 public:
  virtual ~Updates() = default;
  // Answers by Conductor::uploaded(), unless the update is discarded or the connection breaks. The part of an
  // update that has arrived is kept when a connection breaks.
  virtual void fetch(const RunEngine::Fetch& fetch) = 0;
  // Ends the transfer and drops what has arrived.
  virtual void discard(ClientId client, TaskId task) = 0;
};

// The coordinator's place among clients that exchange updates and the model.
class Exchange {
 public:
  virtual ~Exchange() = default;
  // Observes who has which chunks of this object; false if it is already exchanged in another role.
  virtual bool watch(const protocol::Manifest& object) = 0;
  // Exchanges a watched or fetched object's chunks, or what is known about them, with this client.
  virtual void admit(ClientId client, const protocol::ObjectId& object) = 0;
  virtual void let_go(const protocol::ObjectId& object) = 0;
  // Fetches a model. Answers by Conductor::fetched(), perhaps also after abandon().
  virtual void fetch(const protocol::Manifest& model) = 0;
  // Ends the fetch; pause() keeps what has arrived for another fetch, abandon() drops it. Both do nothing if
  // the fetch could not begin.
  virtual void pause(const protocol::ObjectId& model) = 0;
  virtual void abandon(const protocol::ObjectId& model) = 0;
  // Returns whether the members of a watched object's swarm together hold all its chunks.
  virtual bool obtainable(const protocol::ObjectId& object) const = 0;
  // Returns the chunks that a client has reported to have; null before its first report.
  virtual const swarm::ChunkSet* chunks_of(ClientId client, const protocol::ObjectId& object) const = 0;
  // Returns whether other clients can connect to this one.
  virtual bool listens(ClientId client) const = 0;
  // Tells the client which others it exchanges this object with.
  virtual void introduce(ClientId client, const std::vector<ClientId>& others,
                         const protocol::ObjectId& object) = 0;
  virtual swarm::RoundWarmup::Seeds warmup_seeds(TaskId task) = 0;
};

// The coordinator's half of split trainings, and the clients' messages about it.
class Halves {
 public:
  virtual ~Halves() = default;
  // The client was sent this task, which starts from this model. What it has trained in the task goes on.
  virtual void begin(const RunEngine::Assign& work, const protocol::Manifest& model) = 0;
  // Takes a message of split training; false: it is another.
  virtual bool receive(ClientId client, const protocol::Message& message) = 0;
  // The client trains no more in this task. What is on the disk stays.
  virtual void drop(ClientId client, TaskId task) = 0;
  // The client disconnected.
  virtual void left(ClientId client) = 0;
  // The models of this round and of all before are durable.
  virtual void forget(RoundNumber round) = 0;
  virtual void stop() = 0;
};

// Made says what a track phase's model consists of: the updates folded here, a model that clients aggregated,
// or nothing, for this reason.
struct Folded {};
struct MadeByClients {
  protocol::ObjectId model{};
  std::vector<ClientId> contributors;  // clients whose updates are in it
};
struct NotMade {
  Error reason;
};
using Made = std::variant<Folded, MadeByClients, NotMade>;

// The models of the run's tracks. Calls take effect in their order, perhaps on another thread.
class Aggregate {
 public:
  virtual ~Aggregate() = default;
  // Not between close() and its answer.
  virtual TrackView view(TrackId track) const = 0;
  virtual Result<void> start(const RunEngine::StartTrack& start) = 0;
  virtual void retire(TrackId track) = 0;
  // Adds an update that uploaded() reported.
  virtual void fold(const RunEngine::Fold& fold) = 0;
  // The clients of the round add this update to theirs.
  virtual void folded_by_clients(const RunEngine::Fold& fold) = 0;
  virtual void count(const RunEngine::Count& zeros) = 0;
  // Starts a sum of masked updates over these cells, and of as many sums of evaluations.
  virtual void open_sum(std::vector<Range> cells, std::size_t task_sums) = 0;
  virtual void fold_masked(const RunEngine::Fold& fold, std::vector<std::uint64_t> scalars) = 0;
  // Removes the masks. Answers by Conductor::summed() when the sum is durable.
  virtual void sum_up(TaskId task, privacy::Unmasking unmasking) = 0;
  // Moves the track's model. Answers by Conductor::aggregated(), and then, when the model is durable, by
  // Conductor::closed(). Several phases may be in progress. If a model of clients is unusable, the track
  // keeps its model.
  virtual void close(const RunEngine::CloseRound& turn, const Made& made) = 0;
  // While an earlier process' inputs are repeated: whether that process closed this phase, so that its models
  // are here already.
  virtual bool closed_before(const RunEngine::CloseRound&) { return false; }
};

// Decides when the engine's decisions are carried out: not before their inputs are durable.
class Gate {
 public:
  virtual ~Gate() = default;
  // Called before the engine gets an input.
  virtual void record(const RunEngine::Input& input) = 0;
  // Passes the decision about the last recorded input to Conductor::carry_out(), after all former ones.
  virtual void enter(Decision decision) = 0;
};

// The owner of a run.
class Owner {
 public:
  virtual ~Owner() = default;
  virtual void report(const Event& event) = 0;
  // Something was decided: Conductor::next_deadline() may have changed. `stepped`: also what the engine waits
  // for.
  virtual void settled(bool stepped) = 0;
  // No phase is in progress any more.
  virtual void finished(const std::string& reason) = 0;
  // kInvalid: a part of the run's strategy has failed. Other errors are the machine's.
  virtual void failed(const Error& error) = 0;
};

struct Ports {
  Clients* clients;
  Models* models;
  Updates* updates;
  Exchange* exchange;  // null unless the run is serverless
  Aggregate* aggregate;
  Gate* gate;
  Owner* owner;
  Halves* halves = nullptr;  // null unless training is split, and where it is not carried out here
  Watch* watch = nullptr;    // null: nobody follows the run
};

}  // namespace fedge::server
