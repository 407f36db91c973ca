// RunHost: the shell around one run's engine. The io_context's thread runs timers and the engine; one worker
// thread folds updates, applies the aggregate and evaluates, in order; the journal's thread makes durable
// what has happened. Clients and their links are lent by the coordinator, which passes on what they send.
// Owned by shared_ptr, since timers, links and workers call back. Private to coordinator/.
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
    std::function<void(const RoundMetrics&)> on_round;  // has become durable
    std::function<void(const Event&)> on_event;
    // With the run's last models, before it is over.
    std::function<Result<void>(std::vector<FinalModel>)> on_models;
    // It is over, in the store too; nothing more is heard of it.
    std::function<void(RunStatus, const std::string& reason)> on_over;
    // The disk's or the system's fault: the run can be gone on with, once that is mended.
    std::function<void(const Error&)> on_failure;
  };
  struct House {
    boost::asio::io_context& io;
    const Peers& peers;
    // Whether this client's key is still welcome; if not, its link is being closed.
    std::function<bool(const std::shared_ptr<protocol::Link>&)> is_welcome;
    // It has sent what it should not have.
    std::function<void(ClientId, const std::string& sent)> misbehaved;
    std::filesystem::path data_directory;
    dht::Directory* directory = nullptr;  // null: the coordinator takes part in none
    Announcer* announcer = nullptr;       // null with it
    Seeder* seeder = nullptr;
  };
  RunHost(House house, RunParts parts, Callbacks callbacks);

  // Before start(): what clients say of themselves, and what an operator has written down for it.
  Result<void> prepare();
  // Goes on with the run, with those who are connected.
  void start();
  // A client has connected; or left, `for_good` if it has been revoked.
  void joined(ClientId client);
  void left(ClientId client, bool for_good);
  void received(ClientId client, const protocol::Message& message);
  // Ends the run as an operator wishes: with the models of the last round that was closed.
  void end(const std::string& reason);
  // Nothing new begins. What has happened is durable, and nothing of it is in anybody's hands, when `done` is
  // called. False if the run is at its end anyway.
  bool pause(std::function<void()> done);
  // Nothing new begins.
  void leave();
  // After leave(): writes what is not durable yet, if the disk takes it; returns when its threads have ended.
  void shut_down();

  const RunRecord& record() const { return parts_.record; }
  const run::RunConfig& config() const { return state_.config(); }
  const std::vector<RoundMetrics>& history() const { return parts_.recovered.history; }
  std::size_t tasks() const { return serving_.size(); }

 private:
  // A turn of a round on its way to being durable.
  struct Closing {
    RunEngine::CloseRound close;
    protocol::Traffic traffic;
    std::vector<std::shared_ptr<protocol::StoredObject>> folded;  // to be let go of then
    std::optional<RunState::MadeByClients> made;
    std::shared_ptr<protocol::StoredObject> summed;  // what its secret sum has come to, likewise
    bool closed = false;
    bool waits_for_room = false;
    std::optional<Error> not_aggregated;
    std::optional<RoundMetrics> metrics;  // if it ends the round
    std::optional<Checkpoint> checkpoint;
    std::vector<protocol::ObjectId> removals;
  };

  Result<void> open_records();
  void described(ClientId client, const NodeRecord& record);
  void follow(ClientId client);
  Result<void> take_policy();
  void hear();
  void step(const RunEngine::Input& input) { step(input, nullptr); }
  // Gives the engine an input, and the journal. With a payload, what the engine wants done is done when both
  // are durable, and so is what later inputs make it want.
  void step(const RunEngine::Input& input, std::shared_ptr<protocol::StoredObject> payload);
  void carry_out(const std::vector<RunEngine::Effect>& effects);
  void became_durable(std::uint64_t sequence);
  void published(ClientId client, const protocol::PublishRecord& record);
  // An update is here, or will not be.
  void uploaded(const RunEngine::Input& outcome);
  void answered(ClientId client, const protocol::RunAnswer& answer);
  void stop_serving(ClientId client, TaskId task);
  void perform(const RunEngine::Effect& effect);
  void assign(const RunEngine::Assign& work);
  // What the engine has to say.
  void send(ClientId client, const protocol::Message& message);
  void deliver(ClientId client, const protocol::Message& message);
  void fetch(const RunEngine::Fetch& fetch);
  void fold(const RunEngine::Fold& fold);
  // `upload` holds its values and is let go of then; empty if there is nothing to let go of.
  void fold(TrackId track, aggregation::Update update, run::StoredUpdate upload);
  void start_track(const RunEngine::StartTrack& start);
  void close_round(const RunEngine::CloseRound& close);
  // What clients have made of the round that is being closed.
  void made_by_clients(Result<std::shared_ptr<protocol::StoredObject>> model);
  // Whether the message is about a round whose updates stay with the clients, or are summed in secret.
  bool shared(ClientId client, const protocol::Message& message);
  bool secure(ClientId client, const protocol::Message& message);
  void begin_secure(const RunEngine::BeginSecure& begin);
  void fold_masked(const RunEngine::Fold& fold);
  // The masks of the round that is being closed are known, or why there is nothing to take them away of.
  void summed(SecureRound::Closed closed);
  void unmasked(const std::shared_ptr<Closing>& closing, const Result<RunState::Summed>& sum);
  void hear_secure();
  // On the worker thread: as far as there is room on the disk, to be called again after kResource.
  Result<void> go_on_closing(Closing& closing);
  void post_closing(const std::shared_ptr<Closing>& closing);
  void closed_round(const std::shared_ptr<Closing>& closing, const Result<void>& outcome);
  void committed(const std::shared_ptr<Closing>& closing);
  // Tells the engine what an operator has changed meanwhile.
  void read_policy();
  void look_around();
  void fail(const Error& error);
  void journal_failed(const Error& error);
  // The run's last models are there.
  void finish();
  void over(Result<std::vector<FinalModel>> models);
  // Calls back once the worker has done all that it was given.
  void when_idle(std::function<void()> done);
  void arm_timer();
  void report(const Event& event);
  // The run's clock stood still while nobody led it.
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
    std::optional<protocol::ObjectId> exchanged;  // the model, in its swarm
  };
  MessageAllowance allowance_;
  std::map<ClientId, Serving> serving_;  // what each may still fetch, for which task
  std::shared_ptr<Uploads> uploads_;
  std::shared_ptr<ServerlessRounds> serverless_;  // in a run without a server
  std::shared_ptr<SecureRounds> secure_;          // in a run with secure sums
  std::shared_ptr<Closing> unmade_;               // its round that is closed, and its model not made
  std::shared_ptr<JournalWriter> journal_;
  struct Waiting {
    std::uint64_t sequence;  // 0: for those before it alone
    std::vector<RunEngine::Effect> effects;
  };
  std::deque<Waiting> waiting_;  // effects of what is not durable yet, in their order
  // How the policy differs, at the start, from what the engine knows.
  std::optional<aggregation::Policy> policy_change_;
  std::optional<PolicyFile> policy_;  // none in a run that has one model for all, whatever happens
  protocol::Timer look_timer_;
  protocol::Timer retry_timer_;  // of a round that could not be closed for want of room
  // Updates as they were sent: in a model that is not durable yet; from before this process, half here.
  std::vector<std::shared_ptr<protocol::StoredObject>> folded_;
  std::vector<std::shared_ptr<protocol::StoredObject>> arriving_;
  std::string stopped_;                                        // why the run is being ended, if it is
  std::optional<NodeRecords> nodes_;                           // in a run whose clients publish records
  protocol::Traffic messages_;                                 // the run's frames, but for chunks
  std::shared_ptr<Bytes> served_ = std::make_shared<Bytes>();  // chunks
  protocol::Traffic counted_traffic_;                          // already reported with a round
  std::size_t closing_ = 0;                                    // turns that are on their way to being durable
  bool ending_ = false;                                        // the run ends as soon as there are none
  bool finished_ = false;
  RunVerdict verdict_;  // of all rounds, also of those before this process
};

}  // namespace fedge::server
