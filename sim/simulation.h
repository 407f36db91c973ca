// Simulation: drives one RunEngine and many ClientEngines, the very objects of the daemons, in
// virtual time. Messages take latency and bandwidth, training takes device time, clients drop out;
// local training is really computed (TrainingPool), so that the models are real. Single-threaded but
// for the mathematics; a function of run file and seed.
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

#include "client/client_engine.h"
#include "core/parallel.h"
#include "core/result.h"
#include "server/directory/announcer.h"
#include "server/directory/node_records.h"
#include "server/engine/make_engine.h"
#include "server/run_state.h"
#include "sim/attacks/adversary.h"
#include "sim/availability/availability.h"
#include "sim/devices.h"
#include "sim/directory/virtual_directory.h"
#include "sim/dissemination/virtual_sharing.h"
#include "sim/dissemination/virtual_swarm.h"
#include "sim/event_queue.h"
#include "sim/secure/virtual_sessions.h"
#include "sim/spec.h"
#include "sim/training_pool.h"

namespace fedge::sim {

struct SimulationHooks {
  std::function<void(const server::RoundMetrics&)> on_round;
  std::function<void(Time, const Event&)> on_event;  // may be empty
  std::function<bool()> interrupted;                 // asked between events; may be empty
};

class Simulation {
 public:
  // Everything lent must outlive the simulation.
  Simulation(const SimulationSpec& spec, const learn::Task& task, server::RunState& state,
             std::unique_ptr<server::RunEngine> engine, Parallel& parallel);

  // Before run(): updates wait in this store, which must outlive the simulation, instead of in memory.
  void spool_to(protocol::ChunkStore& store) { pool_.spool_to(store); }
  // Runs to the end of the run, or until interrupted.
  Result<void> run(const SimulationHooks& hooks);

  Time now() const { return now_; }
  std::uint64_t events() const { return events_; }

 private:
  struct Cut {
    std::uint32_t session;
    TaskId task;
  };                 // the link breaks, if it is still this one and the client has this task
  struct Change {};  // the device comes up or goes down
  struct Arrive {
    std::uint32_t session;
  };  // the connection is up on the coordinator's side
  struct Uploaded {
    std::uint64_t transfer;
  };  // an update is all there, unless its transfer was ended before
  struct Published {
    protocol::PublishRecord record;
    std::uint32_t session;
  };
  struct ClientInput {
    client::ClientEngine::Input input;
    std::uint32_t session;
  };
  struct ServerInput {
    server::RunEngine::Input input;
    std::uint32_t session;
  };
  struct Happening {
    std::function<void()> what;
  };
  using Payload =
      std::variant<Expired, Cut, Change, Arrive, Uploaded, Published, ClientInput, ServerInput, Happening>;
  struct Scheduled {
    std::optional<ClientId> client;  // nobody: the coordinator's own timer, or what happens in a swarm
    Payload payload;
  };
  // An update on its way to the coordinator.
  struct Upload {
    std::uint64_t transfer;
    TaskId task;
    Time begin;  // when its first byte has the client's line, and
    Time end;    // its last has passed it
    Bytes size;
  };
  // A client's surroundings; its decisions are in the engine.
  struct VirtualClient {
    client::ClientEngine engine;
    std::uint32_t session = 0;  // counts connections; what belongs to an earlier one is lost
    TaskId assigned;            // that it was given last, how often, and whether it is over
    std::uint32_t times_assigned = 0;
    bool assigned_over = false;
    bool online = false;
    Time down_free{};  // when each direction of its link is free again
    Time up_free{};
    std::optional<Upload> upload;
    Time offline_until{};
    Phase phase;           // is the device itself there
    Time training_ends{};  // of the training last begun
    std::optional<Time> timer;
    double data_share = 1;          // that it was last asked to train on
    std::optional<double> utility;  // of its last update that has arrived
    // The last model that it fetched and which chunks it has of it, where most of the next is the same.
    std::shared_ptr<const protocol::Manifest> held;
    std::vector<bool> held_chunks;
    // What it will have once the fetch that is under way has ended; of one that is cut off, nothing.
    std::shared_ptr<const protocol::Manifest> arriving;
    std::vector<bool> arriving_chunks;
    std::optional<client::ClientEngine::FetchModel> exchanging;  // a model that is not all there yet
    std::optional<client::ClientEngine::Trained> unmasked;       // an update that waits for its masks
    // The models of its task in hand and of one on its way to it.
    std::map<TaskId, GlobalState> models;
  };

  void start_clients();
  // The chunks that a client has to fetch of a model, which is then on its way.
  std::vector<bool> missing(ClientId id, const protocol::Manifest& model, const Coverage& needed);
  void change(ClientId id);
  // With a directory.
  void enter_directory();
  // Lets it run as far as nothing else happens before.
  void let_directory_run();
  void find_coordinator(ClientId id);
  void follow(ClientId id);
  void publish_in_directory(ClientId id, RunId run, const NodeRecord& record);
  // Where clients exchange the model.
  class SwarmNetwork;
  void enter_swarm();
  void share_updates();
  void exchange_model(ClientId id, const client::ClientEngine::FetchModel& fetch);
  void exchanged(ClientId id);
  // Whoever is heard to have trained needs its task's model no more.
  void trained_in_swarm(ClientId id, const server::RunEngine::Input& input);
  // Where updates are summed in secret.
  void sum_in_secret();
  bool waits_for_masks(ClientId id, client::ClientEngine::Trained& trained);
  void masks_known(ClientId id);
  void give_up(ClientId id, const Error& error);
  void fold_masked(const server::RunEngine::Fold& fold);
  void report_fault(const server::RunEngine::Fold& accepted, const Error& fault);
  void summed(server::SecureRound::Closed closed);
  // Why the run cannot be hoped to go on, or nothing.
  std::optional<Error> standstill() const;
  void dispatch(Scheduled& event);
  void step_client(ClientId id, const client::ClientEngine::Input& input);
  void step_server(const server::RunEngine::Input& input);
  void arm_client_timer(ClientId id);
  void arm_server_timer();
  void cut(ClientId id, const char* reason);

  void perform(ClientId id, const client::ClientEngine::Effect& effect);
  void connect(ClientId id);
  void connect_to_coordinator(ClientId id);
  void prepare(ClientId id, RunId run);
  void fetch_model(ClientId id, const client::ClientEngine::FetchModel& fetch);
  void train(ClientId id, const client::ClientEngine::Train& train);
  void publish(ClientId id, const client::ClientEngine::Publish& publish);
  void client_sends(ClientId id, const protocol::Message& message);

  void perform(const server::RunEngine::Effect& effect);
  void start_track(const server::RunEngine::StartTrack& start);
  Result<void> load_global(TrackId track);
  void assign(const server::RunEngine::Assign& assign);
  // What the engine has to say, and what is sent of it.
  void server_says(ClientId id, const protocol::Message& message);
  void server_sends(ClientId id, const protocol::Message& message);
  void fetch_update(const server::RunEngine::Fetch& fetch);
  void update_arrived(ClientId id, TaskId task);
  // Nothing more of it is sent from then on, and what has been sent counts.
  void end_upload(ClientId id, Time then);
  void fold(const server::RunEngine::Fold& fold);
  void fold(TrackId track, aggregation::Update update);
  void flush_folds();
  void close_round(const server::RunEngine::CloseRound& close);
  // The model is moved by what has been folded.
  void commit(const server::RunEngine::CloseRound& close);
  void made_by_clients(const std::optional<Error>& not_made);
  void end_round();

  Device device(ClientId id) const { return Device(spec_, id, root_); }
  // One way between this client and the coordinator.
  Duration latency(ClientId id) const;
  void record_arrived(ClientId id, const protocol::PublishRecord& record);
  VirtualClient& at(ClientId id) { return clients_[id.value()]; }
  // When bytes sent now have passed the client's link downwards / upwards.
  Time down_arrival(ClientId id, Bytes bytes);
  Time up_arrival(ClientId id, Bytes bytes);
  void schedule(Time at, std::optional<ClientId> client, Payload payload);
  void report(const Event& event);
  void fail(const Error& error) { failure_ = error; }  // this machine; ends the run

  SimulationSpec spec_;
  const learn::Task& task_;
  server::RunState& state_;
  Parallel& parallel_;
  Rng root_;
  std::unique_ptr<server::RunEngine> engine_;
  std::vector<VirtualClient> clients_;
  TrainingPool pool_;
  std::unique_ptr<VirtualDirectory> directory_;  // null: devices know where the coordinator is
  std::optional<server::Announcer> announcer_;
  std::unique_ptr<swarm::VirtualLinks::Network> swarm_network_;
  std::unique_ptr<VirtualSwarm> swarm_;                   // null: clients fetch models from the coordinator
  std::unique_ptr<VirtualSharing> sharing_;               // null: updates come to the coordinator
  std::unique_ptr<VirtualSessions> sessions_;             // null: as they are
  std::optional<server::RunEngine::CloseRound> closing_;  // a turn whose model clients are making, or its sum
  std::size_t searching_ = 0;                             // devices that look for the coordinator now
  std::optional<server::NodeRecords> nodes_;              // in a run whose clients publish records
  Adversary adversary_;
  std::unique_ptr<Availability> availability_;
  EventQueue<Scheduled> queue_;
  GlobalState global_;                        // of the track in turn, while clients train on it
  std::map<ClientId, double> norms_;          // of updates that have arrived
  std::vector<aggregation::Update> waiting_;  // accepted, not folded yet, all for the track in turn
  TrackId turn_;
  std::deque<server::RunEngine::Input> inputs_;        // the first is being carried out
  Bytes model_size_;                                   // of a whole one on its way to a client
  std::shared_ptr<const protocol::Manifest> fetched_;  // by some client last
  Time now_{};
  Time round_closed_{};  // the last one
  std::optional<Time> server_timer_;
  std::uint64_t events_ = 0;
  std::uint64_t uploads_ = 0;
  std::uint64_t bytes_up_ = 0;  // since the round started
  std::uint64_t bytes_down_ = 0;
  std::chrono::steady_clock::time_point begun_;
  const SimulationHooks* hooks_ = nullptr;
  std::optional<Error> failure_;
  bool finished_ = false;
};

}  // namespace fedge::sim
