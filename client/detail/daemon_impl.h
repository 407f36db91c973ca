// The client daemon's implementation: what link, timers, engine and worker share. Internal to client/.
#pragma once

#include <chrono>
#include <map>
#include <stop_token>
#include <utility>

#include "client/daemon.h"
#include "client/diagnosis/status_file.h"
#include "client/discovery/discovery.h"
#include "client/handshake.h"
#include "client/prepared_run.h"
#include "client/secure/known_clients.h"
#include "client/secure/summed_updates.h"
#include "client/serverless/serverless_updates.h"
#include "client/task_files.h"
#include "core/crypto/random.h"
#include "core/platform/files.h"
#include "privacy/secure_aggregation/client.h"
#include "protocol/session/endpoint.h"
#include "protocol/session/loop.h"

namespace fedge::client {

class Daemon::Impl : public std::enable_shared_from_this<Daemon::Impl> {
 public:
  Impl(boost::asio::io_context& io, DaemonOptions options, DirectoryLock lock, Membership membership,
       SecretKey key, std::unique_ptr<TaskFiles> files)
      : lock_(std::move(lock)),
        io_(io),
        options_(std::move(options)),
        membership_(std::move(membership)),
        key_(std::move(key)),
        files_(std::move(files)),
        engine_(options_.backoff),
        rng_(random_u64()),  // back-off jitter must differ between clients of one image
        timer_(io),
        training_timer_(io),
        status_timer_(io),
        status_(options_.state_directory),
        unfinished_(io) {}

  // Before start(): reads state files, opens TLS and the directory.
  Result<void> prepare();
  // Resumes the updates of an earlier process, and connects.
  void start();
  void step(const ClientEngine::Input& input);
  void shut_down();

  std::optional<Error> failure_;
  std::function<void()> finished_;

 private:
  void perform(const ClientEngine::Effect& effect);
  void connect();
  void connect_to(const protocol::Address& address);
  void prefer(const std::vector<protocol::Address>& announced);
  // Stores the address at which the coordinator answered.
  void remember(const protocol::Address& address);
  void use(std::shared_ptr<protocol::Link> link, const protocol::Welcome& welcome);
  void send(const protocol::Message& message);
  // Whether this update must not leave because it is unmasked; then it is not sent.
  bool withhold(const protocol::UpdateOffer& offer);
  void prepare(const protocol::RunDescription& description);
  TrainerOptions trainer_of(const std::string& run);
  void prepared(const std::shared_ptr<const protocol::RunDescription>& described,
                const Result<std::shared_ptr<PreparedRun>>& built);
  void forget(RunId run);
  void fetch(const ClientEngine::FetchModel& fetch);
  void fetched(const ClientEngine::FetchModel& fetch, Result<TaskFiles::Download> download);
  // Fetches the model from the members of its swarm.
  void exchange_model(RunId run, std::function<void(const Result<void>&)> done);
  void end_exchange(RunId run);
  void fetch_object(const protocol::Manifest& manifest, std::shared_ptr<protocol::ChunkSink> sink,
                    std::function<void(const Result<void>&)> done);
  struct TaskToTrain {
    protocol::TrainRequest request;
    std::stop_token stop;
    std::stop_token enough;
  };
  Result<WorkResult> work(PreparedRun& run, TaskFiles::Download download, const TaskToTrain& order);
  void report_fault(const PreparedRun& run, const protocol::TrainRequest& request, const Error& fault);
  Result<Secret> noise_root(RunId run) const;
  Result<void> count_release(const PreparedRun& run, const protocol::TrainRequest& request,
                             const OutgoingUpdate& update) const;
  Result<OutgoingUpdate> in_the_clear(const PreparedRun& run, const protocol::TrainRequest& request,
                                      WorkResult result) const;
  void train(const ClientEngine::Train& train);
  void trained_plain(const TaskToTrain& order, Result<WorkResult> result, const Digest& update);
  Result<void> admit_sum(const PreparedRun& prepared, const SummedUpdates::Sum& sum) const;
  void trained(const TaskToTrain& order, const Result<TaskFiles::Update>& update);
  // Handles a message about a serverless round; false: the message is about something else.
  bool share(const protocol::Message& message);
  // The round's updates at this client, if this is the run's current task; else null.
  ServerlessUpdates* serverless_updates(RunId run, TaskId task);
  template <class M>
  bool pass_on(const protocol::Message& message);
  void end_sharing(RunId run);
  // Secure aggregation.
  struct Part;
  void sync_sessions();
  void begin_session(RunId run, Part& part, const protocol::TrainRequest& task);
  // Handles a message about a secure session; false: the message is about something else.
  bool handle_secure_message(const protocol::Message& message);
  template <class M>
  bool hear(const M& message);
  void repeat_session(const protocol::TrainRequest& request);
  void carry_out(RunId run, const std::vector<privacy::SecureClient::Effect>& effects);
  void stop_session(RunId run, const Error& error);
  void keep_known_clients();
  void kept_known_clients(std::size_t number, const Result<void>& written);
  // Sends shares only after the disk has recorded that they are sent.
  void reveal(RunId run, const protocol::SecureUnmask& answer);
  void say(RunId run, const protocol::Message& message);
  void report_stage(RunId run, Event event);
  void mask(RunId run);
  Result<OutgoingUpdate> mask(const PreparedRun& prepared, const protocol::TrainRequest& request,
                              const privacy::Masking& masking, WorkResult result) const;
  void publish(const ClientEngine::Publish& publish);
  void publish_in_directory(RunId run, const NodeRecord& record, Time expires);
  void limit_training(const ClientEngine::Train& train, std::stop_source enough);
  void abandon(RunId run);
  void stop_serving(RunId run);
  void run_ended();
  void revoked(const std::string& reason);
  void finish();
  void report(const Event& event);
  void arm_timer();
  void show_status();
  Time now() const { return Time(std::chrono::steady_clock::now() - started_); }
  void disconnected(const Error& error) { step(ClientEngine::Disconnected{error}); }

  DirectoryLock lock_;  // two daemons with one key would disconnect each other
  boost::asio::io_context& io_;
  DaemonOptions options_;
  Membership membership_;
  SecretKey key_;
  std::shared_ptr<protocol::TlsIdentity> identity_;
  std::unique_ptr<TaskFiles> files_;  // used by the worker after start()
  ClientEngine engine_;
  Rng rng_;
  protocol::Timer timer_;
  protocol::Timer training_timer_;
  protocol::Timer status_timer_;
  StatusFile status_;
  KnownClients known_clients_;
  std::size_t known_asked_ = 0;          // number of known clients whose write has been requested
  std::size_t known_written_ = 0;        // number of known clients on the disk
  std::optional<SummedUpdates> summed_;  // set by prepare()
  bool status_due_ = false;
  // Keeps the io_context running while only the worker has work.
  protocol::Unfinished unfinished_;
  // Its jobs hold this object weakly: otherwise a job that never begins would keep it alive.
  protocol::Worker worker_;
  protocol::Worker writer_;  // a second worker, for writes that must not wait for training
  std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();
  std::vector<protocol::Address> addresses_;  // of the coordinator, in the order to try
  std::size_t next_address_ = 0;
  std::unique_ptr<dht::DirectoryNode> directory_;
  dht::SequenceNumbers sequences_;
  dht::Subscription search_;  // looks up the coordinator before each connection
  std::shared_ptr<protocol::Link> link_;
  std::shared_ptr<Swarm> swarm_;
  // A task whose update goes into a secure sum.
  struct SecureTask {
    struct Trained {
      TaskToTrain order;
      WorkResult result;
    };
    privacy::SecureClient session;
    // How many known clients must be on the disk before anything is sent; nothing: none is named yet.
    std::optional<std::size_t> rests_on = {};
    std::vector<privacy::SecureClient::Effect> held = {};  // effects that wait for that write
    SummedUpdates::Sum sum = {};                           // once admitted; its `update` once trained
    std::unique_ptr<Trained> trained = nullptr;            // trained, but not masked yet
    bool noted = false;    // the worker is recording that masks will be revealed
    bool written = false;  // the record is on the disk
  };
  // The state of one run. Keys are the engine's runs: at most kMaxRuns, and those of resumed updates.
  struct Part {
    std::string name;                                           // empty: not described yet
    std::shared_ptr<const protocol::RunDescription> described;  // `prepared` is built from this
    std::shared_ptr<ExternalTrainer> trainer;        // if the user's program trains; used by the worker
    std::shared_ptr<PreparedRun> prepared;           // used by the worker
    std::shared_ptr<protocol::StoredObject> update;  // trained, kept until the verdict
    std::optional<protocol::Manifest> serving;
    std::optional<protocol::ObjectId> exchanging;  // the model that is exchanged with other clients
    std::shared_ptr<ServerlessUpdates> shared;     // updates of the current task, in a serverless run
    std::unique_ptr<SecureTask> secure;            // session of the current task, with secure aggregation
    std::shared_ptr<protocol::StoredObject> made;  // the model that the last serverless task produced
    std::optional<double> utility;                 // of its last training
  };
  std::map<RunId, Part> parts_;
  Duration round_trip_{};           // from Hello to Welcome
  std::optional<RunId> busy_with_;  // run whose task is being fetched or trained
  std::stop_source task_stop_;      // of that task
  TaskFiles::Download download_;    // being fetched, or waiting for training
  std::optional<protocol::Manifest> fetching_;
  bool exchanging_ = false;  // whether that task's model is being fetched through its swarm
};

}  // namespace fedge::client
