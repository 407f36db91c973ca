// Ports: the interfaces of a device that a client's conductor calls. The daemon's ports are sockets, a worker
// thread and files; the simulator's are virtual lines and virtual time. A port decides nothing. It answers by
// an input of TaskConductor, at once or later.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <variant>

#include "client/client_engine.h"
#include "client/secure/known_clients.h"
#include "client/secure/summed_updates.h"
#include "core/crypto/ed25519.h"
#include "core/crypto/entropy.h"
#include "core/event.h"
#include "privacy/secure_aggregation/client.h"
#include "protocol/messages.h"

namespace fedge::client {

// The connection to the coordinator.
class Coordinator {
 public:
  virtual ~Coordinator() = default;
  virtual void connect() = 0;  // Connected or Disconnected
  virtual void disconnect(const std::string& reason) = 0;
  // Drops the message without a connection.
  virtual void send(const protocol::Message& message) = 0;
  // The key that it had when the client joined: what tells one coordinator from another.
  virtual PublicKey identity() const = 0;
};

// The work on tasks: one model is fetched at a time, and one trained.
class Work {
 public:
  virtual ~Work() = default;
  virtual void prepare(
      const protocol::RunDescription& description) = 0;           // Prepared, RunPrepared or RunRejected
  virtual void fetch(const ClientEngine::FetchModel& fetch) = 0;  // ModelFetched or ModelFailed
  // Answers by Trained or TrainingFailed; in a run with masked updates by TrainedUnmasked, and it keeps
  // the update for mask().
  virtual void train(const ClientEngine::Train& train) = 0;
  // Answers by AheadEnded, and keeps the result for train() or abandon_ahead().
  virtual void train_ahead(const ClientEngine::TrainAhead& ahead) = 0;
  virtual void abandon_ahead(RunId run) = 0;
  virtual void mask(RunId run, TaskId task,
                    privacy::Masking masking) = 0;  // Trained or TrainingFailed
  // Stops work on the task, and removes its update.
  virtual void abandon(RunId run, TaskId task) = 0;
  virtual void forget(RunId run) = 0;
  virtual void publish(const ClientEngine::Publish& record) = 0;
};

// The records that survive a restart of the client, and the secrets of its secure sessions.
class Keep {
 public:
  virtual ~Keep() = default;
  // The client's node key; it outlives the conductor.
  virtual const SecretKey& identity() = 0;
  virtual Entropy entropy(const protocol::SecureSession& session) = 0;
  // Null: the keys of other clients are not checked. It outlives the conductor.
  virtual KnownClients* known_clients() = 0;
  virtual void write_known_clients() = 0;  // KnownClientsWritten
  virtual SummedUpdates& summed_updates() = 0;
  // Answers by SumWritten.
  virtual void write_sum(const protocol::SecureSession& session, const SummedUpdates::Record& record) = 0;
};

// A step of a serverless round that the port Peers has made.
struct RoundStep {
  struct ModelHere {  // hold_model()
    Result<void> outcome;
  };
  struct Placed {
    protocol::ObjectId update;
    Result<void> outcome;
  };
  struct Arrived {  // open()
    protocol::ObjectId update;
    Result<void> outcome;
  };
  struct Examined {
    protocol::ObjectId update;
    Result<void> outcome;  // why it is not sound
  };
  struct Made {
    Result<protocol::Manifest> model;
  };
  RunId run;
  TaskId task;
  std::variant<ModelHere, Placed, Arrived, Examined, Made> what;
};

// The other clients of serverless rounds, and this client's store of what they exchange.
class Peers {
 public:
  virtual ~Peers() = default;
  // Completes the round's model on this client's disk, for aggregating.
  virtual void hold_model(const protocol::TrainRequest& request) = 0;
  // Makes room for another client's update.
  virtual void place(RunId run, TaskId task, const protocol::Manifest& update) = 0;
  // Exchanges the update, this client's own or a placed one, with the members of `as`. Called again, also
  // with the model that was made, it only renews an exchange that a lost connection has ended.
  virtual void open(RunId run, const protocol::ObjectId& object, const protocol::ObjectId& as,
                    bool warmup) = 0;
  virtual void close(RunId run, const protocol::ObjectId& object) = 0;
  // Checks the values of an update that has arrived.
  virtual void examine(RunId run, TaskId task, const protocol::ObjectId& update) = 0;
  // Aggregates the updates, which are sound, and exchanges the model with the members of the round's.
  virtual void make(const protocol::TrainRequest& request, const protocol::AggregateUpdates& order) = 0;
  virtual void begin_warmup(RunId run, const protocol::WarmupPlan& plan, const protocol::ObjectId& own) = 0;
  virtual void carry_out(const protocol::ObjectId& swarm, const protocol::WarmupSlot& slot) = 0;
  virtual void end_warmup(const protocol::ObjectId& swarm, const protocol::ObjectId& other) = 0;
  // Checks that the plan follows from the seed; reports if it does not.
  virtual void audit(RunId run, const protocol::WarmupPlan& plan, std::uint64_t seed) = 0;
  // Removes the round's updates. The model that was made is exchanged until the run's next one.
  virtual void end(RunId run, TaskId task) = 0;
};

// The owner of the device.
class Owner {
 public:
  virtual ~Owner() = default;
  virtual void report(const Event& event) = 0;
  // `rejection`: why this client took no part in it.
  virtual void run_ended(const std::optional<Error>& rejection) = 0;
  virtual void revoked(const std::string& reason) = 0;
  virtual void finished() = 0;
  // The conductor has carried out an input: deadlines and state may have changed.
  virtual void settled() = 0;
};

struct Ports {
  Coordinator& coordinator;
  Work& work;
  Keep& keep;
  Owner& owner;
  Peers* peers = nullptr;  // not null in serverless runs
};

}  // namespace fedge::client
