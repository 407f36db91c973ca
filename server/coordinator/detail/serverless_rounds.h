// ServerlessRounds: what a run without a server takes of its coordinator. Updates stay with the clients, who
// exchange and aggregate them; here they are told of each other's, heard about them, and the model that more
// than half of them have made is fetched from them like any other. Answers the engine as uploads would. On
// the io_context's thread; owned by shared_ptr, since timers and the seeder call back. Private to
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
    // Ends aggregate(): with the model in the store, or with the reason why there is none.
    std::function<void(Result<std::shared_ptr<protocol::StoredObject>>)> on_made;
    std::function<void(ClientId, const protocol::Message&)> send;
    std::function<void(const Event&)> on_event;
  };
  // What is lent must outlive it. `models` is where the run's models are.
  ServerlessRounds(boost::asio::io_context& io, Seeder& seeder, protocol::ChunkStore& models,
                   const run::RunConfig& config);
  void set_callbacks(Callbacks callbacks) { callbacks_ = std::move(callbacks); }

  // Before anything else: what a process before this one has left of its last round.
  void resume(ServerlessRound round, const protocol::Manifest& model);
  // It is here, and has the run's data. Whoever had a part in a round that is being aggregated has it again.
  void arrived(ClientId client);
  // The client has this task, which begins as this model.
  void assigned(ClientId client, TaskId task, const protocol::Manifest& model);
  // In the place of a fetch: the update is to become known to all.
  void offered(const RunEngine::Fetch& fetch);
  void discard(ClientId client);
  void fold(const RunEngine::Fold& fold) { round_.fold(fold); }
  // It loses its task, if this says so, whoever of the two says it.
  void dismissed(ClientId client, const protocol::Message& message);
  // It has not come back from before a restart, and is waited for no more.
  void given_up(ClientId client);
  // Its link is gone. True: its update may come to the others without it, and the engine hears of the loss
  // when that is known.
  bool departed(ClientId client);
  // It is back: what had been kept from the engine is told.
  void returned(ClientId client);
  // UpdateHeld and AggregateMade; false: it was not asked for that.
  bool received(ClientId client, const protocol::Message& message);
  // An update is in the aggregate when there is one: until then its client is not told.
  void keep(ClientId client, const protocol::UpdateVerdict& verdict);

  // The round is closed: has the participants aggregate what has been folded, and fetches what they make of
  // it.
  void aggregate(TaskId task);
  // The clients whose updates are in the aggregate.
  std::vector<ClientId> contributors() const;
  // Bytes of models that have come over the wire.
  Bytes received() const { return *received_; }
  // The round is durable: what was kept is said; without a model, that nothing has come of the updates.
  void finish(bool made);
  // Nothing is waited for any more.
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
  // Somebody may make room meanwhile.
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
  protocol::Manifest model_;  // that the round begins as
  std::set<protocol::ObjectId> watched_;
  std::set<ClientId> telling_;  // what has been decided of their updates is on its way to the engine
  std::set<ClientId> gone_;     // of whom the engine has not heard yet that they have
  std::map<ClientId, protocol::UpdateVerdict> kept_;
  protocol::Timer late_timer_;
  protocol::Timer look_timer_;
  protocol::Timer warmup_timer_;
  std::optional<ServerlessWarmup> warmup_;  // of this round, if the run has any
  enum class Stage { kSharing, kMaking, kMade };
  Stage stage_ = Stage::kSharing;
  bool late_ = false;
  Time known_from_{};        // before that, who has which chunks may not have been said
  bool full_ = false;        // has been reported
  std::size_t refused_ = 0;  // updates of this round
  std::size_t lost_ = 0;
  std::shared_ptr<protocol::StoredObject> arriving_;
  std::shared_ptr<Bytes> received_ = std::make_shared<Bytes>();
};

}  // namespace fedge::server
