// RunHost: the I/O adapter of one run's engine. The io_context's thread runs timers and the engine. One
// worker thread folds updates, applies the aggregate and evaluates, in order. The journal's thread makes
// inputs durable. The coordinator owns the clients' links and passes on their messages. Owned by
// shared_ptr, because timers, links and workers call back. Private to coordinator/.
#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "aggregation/aggregators/aggregator.h"
#include "protocol/session/loop.h"
#include "server/access/message_allowance.h"
#include "server/coordinator/detail/journal_writer.h"
#include "server/coordinator/detail/secure_rounds.h"
#include "server/coordinator/detail/seeder.h"
#include "server/coordinator/detail/serverless_rounds.h"
#include "server/coordinator/peers.h"
#include "server/coordinator/run_parts.h"
#include "server/coordinator/uploads.h"
#include "server/directory/announcer.h"
#include "server/directory/node_records.h"
#include "server/policy_file.h"
#include "server/report/run_verdict.h"

namespace fedge::server {

class RunHost : public std::enable_shared_from_this<RunHost> {
 public:
  struct Callbacks {
    std::function<void(const RoundMetrics&)> on_round;  // the round is durable
    std::function<void(const Event&)> on_event;
    // Why the run makes no progress; empty: it does.
    std::function<void(const std::string& reason)> on_waiting;
    // Receives the run's last models, before the run ends.
    std::function<Result<void>(std::vector<FinalModel>)> on_models;
    // The run has ended, also in the store; no other callback follows.
    std::function<void(RunStatus, const std::string& reason)> on_over;
    // A disk or system error; the run can be continued once it is repaired.
    std::function<void(const Error&)> on_failure;
  };
  struct House {
    boost::asio::io_context& io;
    const Peers& peers;
    // Returns whether this client's key is still admitted; if not, its link is being closed.
    std::function<bool(const std::shared_ptr<protocol::Link>&)> is_welcome;
    // The client sent an illegal message.
    std::function<void(ClientId, const std::string& sent)> misbehaved;
    std::filesystem::path data_directory;
    dht::Directory* directory = nullptr;  // null: no directory
    Announcer* announcer = nullptr;       // null without a directory
    Seeder* seeder = nullptr;
  };
  RunHost(House house, RunParts parts, Callbacks callbacks);

  // Call before start(). Prepares node records, the operator's policy file and the callbacks.
  Result<void> prepare();
  // Starts or continues the run with the connected clients.
  void start();
  // A client connected or disconnected; `for_good`: its key was revoked.
  void joined(ClientId client);
  void left(ClientId client, bool for_good);
  void received(ClientId client, const protocol::Message& message);
  // Ends the run at an operator's request, with the models of the last closed round.
  void end(const std::string& reason);
  // Stops the run. Calls `done` once all inputs are durable and the worker is idle. Returns false if the
  // run is already ending.
  bool pause(std::function<void()> done);
  // Stops timers and transfers; nothing new begins.
  void leave();
  // Call after leave(). Writes the remaining entries if the disk accepts them, and returns when the threads
  // have ended.
  void shut_down();

  const RunRecord& record() const { return parts_.record; }
  const run::RunConfig& config() const { return state_.config(); }
  const std::vector<RoundMetrics>& history() const { return parts_.recovered.history; }
  std::size_t tasks() const { return serving_.size(); }

 private:
  static constexpr const char* kRunFailed = "the run has failed";  // what clients are told

  // A closed track phase that is not durable yet.
  struct Closing {
    RunEngine::CloseRound close;
    protocol::Traffic traffic;
    std::vector<std::shared_ptr<protocol::StoredObject>> folded;  // removed when durable
    std::optional<RunState::MadeByClients> made;
    std::shared_ptr<protocol::StoredObject> summed;  // its secure sum; removed when durable
    bool closed = false;
    bool waits_for_room = false;
    std::optional<Error> not_aggregated;
    std::optional<RoundMetrics> metrics;  // if the phase ends the round
    std::optional<Checkpoint> checkpoint;
    std::vector<protocol::ObjectId> removals;
  };

  Result<void> open_records();
  void described(ClientId client, const NodeRecord& record);
  void follow(ClientId client);
  Result<void> take_policy();
  void hear();
  void step(const RunEngine::Input& input) { step(input, nullptr); }
  // Gives an input to the engine and the journal. With a payload, the input's effects wait until both are
  // durable, and effects of later inputs wait behind them.
  void step(const RunEngine::Input& input, std::shared_ptr<protocol::StoredObject> payload);
  void carry_out(const std::vector<RunEngine::Effect>& effects);
  void became_durable(std::uint64_t sequence);
  void published(ClientId client, const protocol::PublishRecord& record);
  // An update was stored or could not be stored.
  void uploaded(const RunEngine::Input& outcome);
  void answered(ClientId client, const protocol::RunAnswer& answer);
  void stop_serving(ClientId client, TaskId task);
  void perform(const RunEngine::Effect& effect);
  void assign(const RunEngine::Assign& work);
  // Handles a Send effect; deliver() puts the message on the client's link.
  void send(ClientId client, const protocol::Message& message);
  void deliver(ClientId client, const protocol::Message& message);
  void fetch(const RunEngine::Fetch& fetch);
  void fold(const RunEngine::Fold& fold);
  // Folds `update` on the worker. `upload` holds the values, and may be empty for an update of zeros.
  void fold(TrackId track, aggregation::Update update, run::StoredUpdate upload);
  void start_track(const RunEngine::StartTrack& start);
  void close_round(const RunEngine::CloseRound& close);
  // Takes the model that serverless clients aggregated for the phase being closed, or why there is none.
  void made_by_clients(Result<std::shared_ptr<protocol::StoredObject>> model);
  // Return whether the message belongs to a serverless round, or to a secure sum.
  bool shared(ClientId client, const protocol::Message& message);
  bool secure(ClientId client, const protocol::Message& message);
  void begin_secure(const RunEngine::BeginSecure& begin);
  void fold_masked(const RunEngine::Fold& fold);
  // Takes the masks to subtract for the phase being closed, or the reason there is no sum.
  void summed(SecureRound::Closed closed);
  void unmasked(const std::shared_ptr<Closing>& closing, const Result<RunState::Summed>& sum);
  void hear_secure();
  // Runs on the worker thread. Continues as far as disk space allows; call again after kResource.
  Result<void> go_on_closing(Closing& closing);
  void post_closing(const std::shared_ptr<Closing>& closing);
  void closed_round(const std::shared_ptr<Closing>& closing, const Result<void>& outcome);
  void committed(const std::shared_ptr<Closing>& closing);
  // Passes the operator's policy changes to the engine.
  void read_policy();
  void look_around();
  // Whether the run neither has ended nor is failing.
  bool goes_on() const { return !finished_ && failed_.empty(); }
  // Ends the run as failed if the error is kInvalid, else the coordinator.
  void fail(const Error& error);
  void journal_failed(const Error& error);
  // Ends the run once no phase is being closed.
  void finish();
  void over(Result<std::vector<FinalModel>> models);
  // Calls `done` once the worker has done all jobs posted before.
  void when_idle(std::function<void()> done);
  void arm_timer();
  // Reports that the run waits for clients when their number has changed, at most once a second.
  void tell_waiting();
  void report(const Event& event);
  // The run's clock, which stands still while no coordinator executes the run.
  Time now() const { return parts_.recovered.time + (std::chrono::steady_clock::now() - started_); }
  protocol::Traffic traffic_since_last_round();

  House house_;
  Callbacks callbacks_;
  RunParts parts_;
  RunState& state_;
  Rng rng_;
  protocol::Timer timer_;
  protocol::Worker worker_;
  std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();
  struct Serving {
    TaskId task;
    std::vector<protocol::ObjectId> objects;
    std::optional<protocol::ObjectId> exchanged;  // the model, if a swarm distributes it
  };
  MessageAllowance allowance_;
  std::map<ClientId, Serving> serving_;  // objects that each client may still fetch
  std::shared_ptr<Uploads> uploads_;
  std::shared_ptr<ServerlessRounds> serverless_;  // null unless the run is serverless
  std::shared_ptr<SecureRounds> secure_;          // null unless the run uses secure sums
  std::shared_ptr<Closing> unmade_;               // closed phase whose aggregate is not known yet
  std::shared_ptr<JournalWriter> journal_;
  struct Waiting {
    std::uint64_t sequence;  // 0: waits only for the effects before it
    std::vector<RunEngine::Effect> effects;
  };
  std::deque<Waiting> waiting_;  // effects whose inputs are not durable yet, in order
  // Policy of the operator's file, if it differs at the start from the one the engine knows.
  std::optional<aggregation::Policy> policy_change_;
  std::optional<PolicyFile> policy_;  // none if the run always trains one model for all
  protocol::Timer look_timer_;
  protocol::Timer waiting_timer_;
  std::optional<RunEngine::Waiting> told_waiting_;  // the last report of tell_waiting()
  bool told_lately_ = false;                        // until waiting_timer_ expires
  protocol::Timer retry_timer_;                     // retries closing a round after a full disk
  // Updates in a model that is not durable yet, and updates that an earlier process received in part.
  std::vector<std::shared_ptr<protocol::StoredObject>> folded_;
  std::vector<std::shared_ptr<protocol::StoredObject>> arriving_;
  std::string stopped_;               // why an operator ends the run; empty: not ending
  std::string failed_;                // why the run has failed, if fail() ended it
  std::optional<NodeRecords> nodes_;  // null unless clients publish records
  protocol::Traffic messages_;        // the run's frames, without chunks
  std::shared_ptr<Bytes> served_ = std::make_shared<Bytes>();  // chunks sent
  protocol::Traffic counted_traffic_;                          // already reported with a round
  std::size_t closing_ = 0;                                    // track phases closed but not durable
  bool ending_ = false;                                        // the run ends when closing_ is 0
  bool finished_ = false;
  RunVerdict verdict_;  // over all rounds, including those of earlier processes
};

}  // namespace fedge::server
