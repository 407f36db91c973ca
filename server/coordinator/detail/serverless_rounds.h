// ServerlessRounds: the coordinator's part in the rounds of a serverless run. Clients keep, exchange and
// aggregate the updates. This class announces updates, collects reports about them, and fetches the model
// that more than half of the clients aggregated. It answers the engine as uploads would. Use it on the
// io_context's thread. Owned by shared_ptr, because timers and the seeder call back. Private to
// coordinator/.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "core/event.h"
#include "protocol/chunks/chunk_store.h"
#include "protocol/session/loop.h"
#include "run/run_config.h"
#include "server/coordinator/detail/seeder.h"
#include "server/engine/serverless_round.h"
#include "server/engine/serverless_warmup.h"

namespace fedge::server {

class ServerlessRounds : public std::enable_shared_from_this<ServerlessRounds> {
 public:
  struct Callbacks {
    std::function<void(const RunEngine::Input&)> on_outcome;  // Stored, Damaged or ClientLeft
    // Result of aggregate(): the model in the store, or why there is none.
    std::function<void(Result<std::shared_ptr<protocol::StoredObject>>)> on_made;
    std::function<void(ClientId, const protocol::Message&)> send;
    std::function<void(const Event&)> on_event;
  };
  // The references must outlive this object. `models` stores the run's models.
  ServerlessRounds(boost::asio::io_context& io, Seeder& seeder, protocol::ChunkStore& models,
                   const run::RunConfig& config);
  void set_callbacks(Callbacks callbacks) { callbacks_ = std::move(callbacks); }

  // Call first. Continues the last round of an earlier process.
  void resume(ServerlessRound round, const protocol::Manifest& model);
  // The client is connected and has the run's data. If its round is being aggregated, it takes part again.
  void arrived(ClientId client);
  // The client was assigned this task, which starts from this model.
  void assigned(ClientId client, TaskId task, const protocol::Manifest& model);
  // Handles Fetch: watches the update and announces it to the participants.
  void offered(const RunEngine::Fetch& fetch);
  void discard(ClientId client);
  void fold(const RunEngine::Fold& fold) { round_.fold(fold); }
  // Gives the client up if this message, from or to it, ends its task.
  void dismissed(ClientId client, const protocol::Message& message);
  // The client did not reconnect after a coordinator restart, so the round stops waiting for it.
  void given_up(ClientId client);
  // The client disconnected. Returns true if its update may still spread without it; the engine then hears
  // of the loss once that is decided.
  bool departed(ClientId client);
  // The client reconnected: reports the disconnect that departed() held back from the engine.
  void returned(ClientId client);
  // Handles UpdateHeld and AggregateMade; returns false if the coordinator did not request the message.
  bool received(ClientId client, const protocol::Message& message);
  // Stores an accepting verdict until the aggregate is known: without an aggregate the update counts for
  // nothing.
  void keep(ClientId client, const protocol::UpdateVerdict& verdict);

  // The round is closed: lets the participants aggregate the folded updates, and fetches their model.
  void aggregate(TaskId task);
  // Returns the clients whose updates are in the aggregate.
  std::vector<ClientId> contributors() const;
  // Returns the bytes of models received on the wire.
  Bytes received() const { return *received_; }
  // The round is durable: sends the stored verdicts, as refusals if no model was aggregated.
  void finish(bool made);
  // Stops timers and transfers.
  void stop();

 private:
  void begin(TaskId task, const protocol::Manifest& model);
  void plan_warmup();
  void stop_gathering();
  void begin_warmup();
  void go_on_warming();
  void end_warmup();
  void tick(void (ServerlessRounds::*next)(), Duration time);
  bool exchanging() const { return !warmup_ || warmup_->over(); }
  Time now() const { return Time(std::chrono::steady_clock::now().time_since_epoch()); }
  void tell(ClientId client, const protocol::Manifest& update);
  void look();
  void go_on();
  void arm(Duration time);
  void choose();
  void fetch(const protocol::Manifest& model);
  void fetched(const protocol::ObjectId& model, const Result<void>& outcome);
  // Retries later: an operator may free disk space.
  void wait_for_room(const Error& full);
  void look_again_after(Duration time);
  void end_making(Result<std::shared_ptr<protocol::StoredObject>> model);
  void report() const;

  boost::asio::io_context& io_;
  Seeder& seeder_;
  protocol::ChunkStore& models_;
  const run::RunConfig& config_;
  Callbacks callbacks_;
  ServerlessRound round_;
  protocol::Manifest model_;  // model that the round starts from
  std::set<protocol::ObjectId> watched_;
  std::set<ClientId> telling_;  // decisions posted but not yet given to the engine
  std::set<ClientId> gone_;     // disconnects not yet reported to the engine
  std::map<ClientId, protocol::UpdateVerdict> kept_;
  protocol::Timer late_timer_;
  protocol::Timer look_timer_;
  protocol::Timer warmup_timer_;
  std::optional<ServerlessWarmup> warmup_;  // of this round, if the run has warm-ups
  enum class Stage { kSharing, kMaking, kMade };
  Stage stage_ = Stage::kSharing;
  bool late_ = false;
  Time known_from_{};        // before then, clients may not have reported their chunks
  bool full_ = false;        // a full disk was reported
  std::size_t refused_ = 0;  // updates of this round
  std::size_t lost_ = 0;
  std::shared_ptr<protocol::StoredObject> arriving_;
  std::shared_ptr<Bytes> received_ = std::make_shared<Bytes>();
};

}  // namespace fedge::server
