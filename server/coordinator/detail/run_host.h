// RunHost executes one run: it owns the run's conductor and the conductor's ports. The io_context's thread
// runs the conductor, one worker thread computes (RunAggregate), and the journal's thread makes inputs
// durable (JournalGate). The coordinator owns the clients' links and passes on their messages. Owned by
// shared_ptr, because timers, links and workers call back. Private to coordinator/.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "protocol/session/loop.h"
#include "server/access/message_allowance.h"
#include "server/conductor/conductor.h"
#include "server/coordinator/detail/journal_writer.h"
#include "server/coordinator/detail/run_clock.h"
#include "server/coordinator/detail/seeder.h"
#include "server/coordinator/peers.h"
#include "server/coordinator/ports/client_lines.h"
#include "server/coordinator/ports/journal_gate.h"
#include "server/coordinator/ports/run_aggregate.h"
#include "server/coordinator/ports/run_exchange.h"
#include "server/coordinator/ports/run_halves.h"
#include "server/coordinator/run_parts.h"
#include "server/coordinator/uploads.h"
#include "server/directory/announcer.h"
#include "server/directory/node_records.h"
#include "server/live/transfers.h"
#include "server/policy_file.h"
#include "server/report/run_verdict.h"

namespace fedge::server {

class RunHost final : public std::enable_shared_from_this<RunHost>, private Owner {
 public:
  struct Callbacks {
    std::function<void(const RoundMetrics&)> on_round;  // the round is durable
    std::function<void(const Event&)> on_event;
    // Why the run makes no progress; empty: it does.
    std::function<void(const std::string& reason)> on_waiting;
    // Receives the models of a round that run.keep_models keeps, on another thread than the others.
    std::function<Result<void>(RoundNumber, const std::vector<FinalModel>&)> on_kept =
        [](RoundNumber, const std::vector<FinalModel>&) { return Result<void>(); };
    // Receives the run's last models and why it failed (empty if it did not), before the run ends.
    std::function<Result<void>(std::vector<FinalModel>, const std::string&)> on_models;
    // The run has ended, also in the store; no other callback follows.
    std::function<void(RunStatus, const std::string& reason)> on_over;
    // A disk or system error; the run can be continued once it is repaired.
    std::function<void(const Error&)> on_failure;
  };
  struct House {
    boost::asio::io_context& io;
    std::unique_ptr<RunClock> clock;
    const Peers& peers;
    // Returns whether this client's key is still admitted, and belongs to the run's project.
    std::function<bool(const std::shared_ptr<protocol::Link>&)> is_welcome;
    // Returns the labels that operators gave to this link's client; nothing if they are not known yet.
    std::function<std::optional<std::vector<std::string>>(const protocol::Link&)> labels_of;
    // The client sent an illegal message.
    std::function<void(ClientId, const std::string& sent)> misbehaved;
    std::filesystem::path data_directory;
    dht::Directory* directory = nullptr;  // null: no directory
    Announcer* announcer = nullptr;       // null without a directory
    Seeder* seeder = nullptr;
    RunWatch::Ended on_task = {};  // a client's task has ended
    WatchRecords records = {};     // for traces
    // Lists what moves, for operators.
    std::shared_ptr<Transfers> transfers = std::make_shared<Transfers>();
    std::function<swarm::RoundWarmup::Seeds(TaskId)> warmup_seeds = random_seeds;  // of serverless runs
  };
  static swarm::RoundWarmup::Seeds random_seeds(TaskId task);
  RunHost(House house, RunParts parts, Callbacks callbacks);

  // Call before start(). Prepares node records, the operator's policy file and the callbacks.
  Result<void> prepare();
  // Starts or continues the run with the connected clients.
  void start();
  // A client connected or disconnected; `for_good`: its key was revoked.
  void joined(ClientId client);
  void left(ClientId client, bool for_good);
  // The operator changed the client's entry: it may have come to the run's project, or left it.
  void reconsider(ClientId client);
  // The client's key was revoked. If it is not connected, its task would otherwise go on until the deadline.
  void revoked(ClientId client);
  void received(ClientId client, const protocol::Message& message);
  // Ends the run at an operator's request, with the models of the last closed round.
  void end(const std::string& reason);
  // Stops the run. Calls `done` once all inputs are durable and the worker is idle. Returns false if the
  // run is already ending.
  bool pause(std::function<void()> done);
  // Calls `done` once all inputs so far are durable, and then the worker has done what was posted before.
  void when_settled(std::function<void()> done);
  // Stops timers and transfers; nothing new begins.
  void leave();
  // Call after leave(). Writes the remaining entries if the disk accepts them, and returns when the threads
  // have ended.
  void shut_down();

  const RunRecord& record() const { return parts_.record; }
  const run::RunConfig& config() const { return state_.config(); }
  const std::vector<RoundMetrics>& history() const { return parts_.recovered.history; }
  std::size_t tasks() const { return lines_->tasks(); }
  const std::shared_ptr<RunWatch>& watch() const { return parts_.watch; }

 private:
  Result<void> open_records();
  void described(ClientId client, const NodeRecord& record);
  void follow(ClientId client);
  Result<void> take_policy();
  void make_ports();
  void make_halves();
  void make_aggregate();
  // Gives the conductor an input, unless the run has ended or is failing.
  void submit(const RunEngine::Input& input);
  void published(ClientId client, const protocol::PublishRecord& record);
  void give_tokenizer(ClientId client, const protocol::TokenizerRequest& asked);
  void closed(const RunEngine::CloseRound& turn, bool aggregated, bool ends,
              const std::optional<RoundMetrics>& metrics);
  void became_durable(std::uint64_t entry);

  void report(const Event& event) override;
  void settled(bool stepped) override;
  void finished(const std::string& reason) override;
  // Ends the run as failed if the error is kInvalid, else the coordinator.
  void failed(const Error& error) override;

  // A client may have taken part whom no policy counts.
  void close_policy();
  // Gives the engine a policy of the operator, unless the run cannot adopt it.
  void adopt(aggregation::Policy policy);
  // Passes the operator's policy changes to the engine.
  void read_policy();
  void look_around();
  // Whether the run neither has ended nor is failing.
  bool goes_on() const { return !finished_ && failed_.empty(); }
  void journal_failed(const Error& error);
  // Ends the run once no phase is being closed.
  void finish();
  void over(Result<std::vector<FinalModel>> models);
  // Reports that the run waits for clients when their number has changed, at most once a second.
  void tell_waiting();
  // The run's clock, which stands still while no coordinator executes the run.
  Time now() const { return parts_.recovered.time + (house_.clock->now() - started_); }
  RunState::Traffic traffic_since_last_round();

  House house_;
  Callbacks callbacks_;
  RunParts parts_;
  RunState& state_;
  Conductor& conductor_;
  protocol::Worker worker_;
  std::chrono::steady_clock::time_point started_ = house_.clock->now();
  MessageAllowance allowance_;
  std::shared_ptr<RunTransfers> transfers_;
  std::shared_ptr<Uploads> uploads_;
  std::shared_ptr<JournalWriter> journal_;
  std::shared_ptr<RunExchange> exchange_;  // null unless the run is serverless
  std::shared_ptr<RunHalves> halves_;      // null unless training is split
  std::optional<ClientLines> lines_;
  std::optional<RunAggregate> aggregate_;
  std::optional<JournalGate> gate_;
  // Policy of the operator's file, if it differs at the start from the one the engine knows.
  std::optional<aggregation::Policy> policy_change_;
  std::optional<PolicyFile> policy_;  // none if the run always trains one model for all
  protocol::Timer look_timer_;
  protocol::Timer waiting_timer_;
  std::optional<RunEngine::Waiting> told_waiting_;  // the last report of tell_waiting()
  bool told_lately_ = false;                        // until waiting_timer_ expires
  std::string stopped_;                             // why an operator ends the run; empty: not ending
  std::string failed_;                              // why the run has failed, if failed() ended it
  bool policy_closed_ = false;                      // no disagreement can be added any more
  std::set<ClientId> members_;                      // connected clients of the run's project
  std::optional<NodeRecords> nodes_;                // null unless clients publish records
  Bytes received_;                                  // the run's frames, without chunks
  RunState::Traffic counted_traffic_;               // already reported with a round
  bool ending_ = false;                             // the run ends when no phase is being closed
  bool finished_ = false;
  RunVerdict verdict_;  // over all rounds, including those of earlier processes
};

}  // namespace fedge::server
