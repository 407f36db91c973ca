// Simulation: drives one RunEngine and many ClientEngines, the same classes as in the daemons, in virtual
// time. Messages take latency and bandwidth, training takes device time, clients drop out. Local training is
// really computed (TrainingPool), so the models are real. Single-threaded except for numerical code;
// deterministic in run file and seed.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <variant>
#include <vector>

#include "client/conductor/task_conductor.h"
#include "core/parallel.h"
#include "core/result.h"
#include "server/conductor/conductor.h"
#include "server/directory/announcer.h"
#include "server/directory/node_records.h"
#include "server/engine/make_engine.h"
#include "server/run_state.h"
#include "sim/attacks/adversary.h"
#include "sim/availability/availability.h"
#include "sim/availability/waiting_report.h"
#include "sim/coordinator/virtual_aggregate.h"
#include "sim/devices.h"
#include "sim/directory/virtual_directory.h"
#include "sim/dissemination/virtual_exchange.h"
#include "sim/dissemination/virtual_swarm.h"
#include "sim/event_queue.h"
#include "sim/secure/virtual_secrets.h"
#include "sim/spec.h"
#include "sim/training_pool.h"
#include "sim/transfers/device_files.h"
#include "sim/transfers/line.h"

namespace fedge::sim {

struct SimulationHooks {
  std::function<void(const server::RoundMetrics&)> on_round;
  std::function<void(Time, const Event&)> on_event;  // may be empty
  std::function<bool()> interrupted;                 // checked between events; may be empty
};

class Simulation {
 public:
  // Borrowed arguments must outlive the simulation.
  Simulation(const SimulationSpec& spec, const learn::Task& task, server::RunState& state,
             std::unique_ptr<server::RunEngine> engine, Parallel& parallel);
  ~Simulation();

  // Stores waiting updates in this store instead of memory. Call it before run(); the store must outlive the
  // simulation.
  void spool_to(protocol::ChunkStore& store) { pool_.spool_to(store); }
  // Runs to the end of the run, or until interrupted.
  Result<void> run(const SimulationHooks& hooks);

  Time now() const { return now_; }
  std::uint64_t events() const { return events_; }

 private:
  struct Cut {
    std::uint32_t session;
    TaskId task;
  };                 // the connection breaks, if it is still this one and the client has this task
  struct Change {};  // the device comes up or goes down
  struct Arrive {
    std::uint32_t session;
  };  // the connection is open on the coordinator's side
  // An update, or a model, has arrived, unless its transfer has ended before.
  struct Uploaded {
    std::uint64_t number;
  };
  struct Downloaded {
    std::uint64_t number;
  };
  struct Published {
    protocol::PublishRecord record;
    std::uint32_t session;
  };
  struct ClientInput {
    client::ClientEngine::Input input;
    std::uint32_t session;
  };
  struct ToCoordinator {
    protocol::Message message;
    std::uint32_t session;
  };
  struct Happening {
    std::function<void()> what;
  };
  using Payload = std::variant<Expired, Cut, Change, Arrive, Uploaded, Downloaded, Published, ClientInput,
                               ToCoordinator, Happening>;
  struct Scheduled {
    std::optional<ClientId> client;  // none: the coordinator's timer, or a swarm event
    Payload payload;
  };
  // An update that the coordinator fetches. What has arrived stays when the connection is lost.
  struct Upload {
    protocol::UpdateOffer offer;
    std::size_t arrived = 0;   // chunks, from the first on
    std::uint64_t number = 0;  // of the transfer
    std::optional<Line::Transfer> transfer = {};
  };
  // A model in transfer from the coordinator.
  struct Download {
    std::uint64_t number;
    RunId run;
    TaskId task;
    Line::Transfer transfer;
  };
  // A client's environment; its decisions are in the conductor.
  struct VirtualClient {
    explicit VirtualClient(ClientId id) : conductor(id) {}
    const client::ClientEngine& engine() const { return conductor.engine(); }

    client::TaskConductor conductor;
    std::uint32_t session = 0;  // counts connections; events of earlier ones are ignored
    TaskId assigned;            // the last assigned task; times_assigned and assigned_over refer to it
    std::uint32_t times_assigned = 0;
    bool assigned_over = false;
    bool online = false;
    Line down;
    Line up;
    std::unique_ptr<Upload> upload;
    std::optional<Download> download;
    std::unique_ptr<DeviceFiles> files;  // null if there are none
    Time offline_until{};
    Phase phase;           // of the device's availability
    Time training_ends{};  // of the last training started
    std::optional<Time> timer;
    double data_share = 1;                                       // share of its data in the last request
    std::optional<double> utility;                               // of its last training
    std::optional<client::ClientEngine::FetchModel> exchanging;  // a model that is still incomplete
    std::optional<client::ClientEngine::Trained> unmasked;       // an update waiting for its masks
    // The models of its current task and of a task on its way to it.
    std::map<TaskId, GlobalState> models;
  };

  void start_clients();
  void change(ClientId id);
  // Directory:
  void enter_directory();
  // Runs the directory up to the next other event.
  void let_directory_run();
  void find_coordinator(ClientId id);
  void follow(ClientId id);
  void publish_in_directory(ClientId id, RunId run, const NodeRecord& record);
  // Exchange of models between clients:
  class SwarmNetwork;
  void enter_swarm();
  void enter_exchange();
  void exchange_model(ClientId id, const client::ClientEngine::FetchModel& fetch);
  void exchanged(ClientId id);
  // Why the run cannot continue; nothing if it can.
  std::optional<Error> standstill() const;
  void dispatch(Scheduled& event);
  void step_client(ClientId id, client::TaskConductor::Input input);
  void client_input(ClientId id, const client::ClientEngine::Input& input);
  void trained(ClientId id, client::ClientEngine::Trained trained);
  void kept(ClientId id, const client::ClientEngine::Trained& trained);
  void arm_client_timer(ClientId id);
  void arm_server_timer();
  void report_waiting(Time until);
  void cut(ClientId id, const char* reason);

  // The ports of a client's conductor.
  class ClientPorts;
  void connect(ClientId id);
  void connect_to_coordinator(ClientId id);
  void prepare(ClientId id, RunId run);
  void fetch_model(ClientId id, const client::ClientEngine::FetchModel& fetch);
  // Downloads what the client's disk lacks.
  void download(ClientId id, RunId run, TaskId task);
  void train(ClientId id, const client::ClientEngine::Train& train);
  void mask(ClientId id, TaskId task, privacy::Masking masking);
  void abandon(ClientId id, TaskId task);
  void publish(ClientId id, const client::ClientEngine::Publish& publish);
  void client_sends(ClientId id, const protocol::Message& message);

  // The conductor's ports, except those that are classes of their own.
  class Ports;
  void make_conductor(std::unique_ptr<server::RunEngine> engine);
  void give(const server::RunEngine::Assign& work, RoundNumber round);
  // The client may lose its connection during this task.
  void plan_dropout(const server::RunEngine::Assign& work);
  void deliver(ClientId id, const protocol::Message& message);
  void fetch_update(const server::RunEngine::Fetch& fetch);
  void update_arrived(ClientId id, TaskId task);
  // Checks an update of a serverless round.
  Result<void> inspect(ClientId id, TaskId task);
  // Ends the transfer. Its line is free from `sent` on, and later bytes do not count. Whole chunks that have
  // passed at `kept` stay at the receiver.
  void end_upload(ClientId id, Time sent, Time kept);
  void end_download(ClientId id, Time sent, Time kept);
  server::RunState::Circumstances end_round();

  Device device(ClientId id) const { return Device(spec_, id, root_); }
  // One-way latency between this client and the coordinator.
  Duration latency(ClientId id) const;
  void record_arrived(ClientId id, const protocol::PublishRecord& record);
  VirtualClient& at(ClientId id) { return clients_[id.value()]; }
  // When bytes sent now have passed the client's downlink or uplink.
  Time down_arrival(ClientId id, Bytes bytes);
  Time up_arrival(ClientId id, Bytes bytes);
  void schedule(Time at, std::optional<ClientId> client, Payload payload);
  void report(const Event& event);
  void fail(const Error& error);  // an error of this machine; ends the run

  SimulationSpec spec_;
  const learn::Task& task_;
  server::RunState& state_;
  Parallel& parallel_;
  Rng root_;
  std::vector<VirtualClient> clients_;
  TrainingPool pool_;
  std::unique_ptr<VirtualDirectory> directory_;  // null: devices know the coordinator's address
  std::optional<server::Announcer> announcer_;
  std::unique_ptr<swarm::VirtualLinks::Network> swarm_network_;
  std::unique_ptr<VirtualSwarm> swarm_;        // null: clients download models from the coordinator
  std::unique_ptr<VirtualExchange> exchange_;  // null: the coordinator receives the updates
  std::unique_ptr<VirtualSecrets> secrets_;    // null: updates are not masked
  std::size_t searching_ = 0;                  // devices looking up the coordinator
  std::optional<server::NodeRecords> nodes_;   // only if the run's clients publish records
  Adversary adversary_;
  std::unique_ptr<VirtualAggregate> aggregate_;
  std::unique_ptr<Ports> ports_;
  std::unique_ptr<server::Conductor> conductor_;
  std::unique_ptr<Availability> availability_;
  EventQueue<Scheduled> queue_;
  DeviceFiles::Manifest fetched_;  // by the last client that fetched
  DeviceFiles::Manifest fetched_control_;
  Time now_{};
  Time round_closed_{};  // when the last round closed
  std::optional<Time> server_timer_;
  WaitingReport waiting_report_;
  std::uint64_t events_ = 0;
  std::uint64_t transfers_ = 0;
  ByteCount traffic_up_;
  ByteCount traffic_down_;
  std::chrono::steady_clock::time_point begun_;
  const SimulationHooks* hooks_ = nullptr;
  std::optional<Error> failure_;
  bool finished_ = false;
};

}  // namespace fedge::sim
