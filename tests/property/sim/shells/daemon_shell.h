// The coordinator's shell: a real RunHost with its ports, journal, worker and checkpoints, and a real Seeder.
// Links, stores and the clock are in memory.
#pragma once

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <memory>
#include <optional>

#include "server/coordinator/detail/run_host.h"
#include "tests/property/sim/shells/client_disks.h"
#include "tests/property/sim/shells/daemon_disk.h"
#include "tests/property/sim/shells/manual_clock.h"
#include "tests/property/sim/shells/memory_link.h"
#include "tests/property/sim/shells/observed.h"
#include "tests/property/sim/shells/scene.h"

namespace fedge::server::shells {

class DaemonShell {
 public:
  DaemonShell(const Scene& scene, const ClientDisks& disks, const std::filesystem::path& directory)
      : scene_(scene), disks_(disks), disk_(scene, directory) {
    open();
  }
  ~DaemonShell() { close(); }
  DaemonShell(const DaemonShell&) = delete;
  DaemonShell& operator=(const DaemonShell&) = delete;

  void link(ClientId client) {
    const auto link = std::make_shared<MemoryLink>(
        node_key(client).public_key(),
        [this, client](const protocol::Message& message) { hear(client, message); });
    const std::string listens = accepts_links(client) ? ":7001" : "";
    REQUIRE(seeder_->connected(client, link, listens));
    peers_.add(client, link);
    if (running()) host_->joined(client);
    settle();
  }
  void leave(ClientId client, bool for_good) {
    const auto link = link_of(client);
    peers_.remove(client);
    link->end();
    seeder_->departed(client);
    if (running()) host_->left(client, for_good);
    settle();
  }
  void receive(ClientId client, const protocol::Message& message) {
    if (running()) host_->received(client, message);
    settle();
  }
  void deliver(ClientId client, protocol::StoredObject& object, const std::optional<Error>& fault) {
    link_of(client)->deliver(object, fault);
    settle();
  }
  // What the client has of this object has changed.
  void announce(ClientId client, const protocol::ObjectId& object) {
    if (running()) tell_held(client, object);
    settle();
  }
  // The client answers the coordinator's requests for a model's chunks.
  void answer_requests(ClientId client, protocol::StoredObject& model, const std::optional<Error>& fault) {
    link_of(client)->answer(model, fault);
    settle();
  }
  void stop(const std::string& reason) {
    if (running()) host_->end(reason);
    settle();
  }
  // The time passes; returns after what was due then.
  void pass(Duration time) {
    clock_.point += std::chrono::duration_cast<RunClock::Point::duration>(time);
    clock_.ring(clock_.run);
    settle();
  }
  void set_room(bool room) { disk_.set_room(room); }
  // The process is killed, and another one begins. Returns the time of the run's clock.
  Time restart(const Crash& crash) {
    close();
    disk_.lose(crash);
    looked_ = 0;
    seen.inputs.clear();
    for (const auto& [client, link] : peers_.links()) std::static_pointer_cast<MemoryLink>(link)->end();
    peers_ = {};
    open(crash.full);
    return started_;
  }
  std::optional<Time> deadline() const {
    if (!clock_.run) return std::nullopt;
    return started_ + (clock_.run->first - started_at_);
  }
  Time now() const { return started_ + (clock_.point - started_at_); }
  std::shared_ptr<protocol::StoredObject> model(const protocol::ObjectId& id) { return disk_.model(id); }
  const DaemonDisk& disk() const { return disk_; }
  // Returns what the present process found in the journal.
  const std::vector<JournalEntry>& before_restart() const { return found_; }
  std::uint64_t rounds_before_restart() const { return found_rounds_; }

  Observed seen;

 private:
  bool running() const { return !seen.over; }
  std::shared_ptr<MemoryLink> link_of(ClientId client) const {
    return std::static_pointer_cast<MemoryLink>(peers_.find(client));
  }
  // The client hears a message. What concerns swarms stays between its disk and the seeder.
  void hear(ClientId client, const protocol::Message& message) {
    ++activity_;
    if (std::holds_alternative<protocol::AggregateUpdates>(message)) disk_.note_order();
    if (const auto* held = std::get_if<protocol::ChunksHeld>(&message))
      return protocol::post(io_, [this, client, id = held->object] {
        if (seeder_ && running()) tell_held(client, id);
      });
    // As the simulator's clients, it serves the coordinator once that wants something of it.
    if (const auto* state = std::get_if<protocol::SwarmState>(&message);
        state != nullptr && state->interested)
      return protocol::post(io_, [this, client] {
        if (seeder_ && running() && link_of(client))
          seeder_->received(client, protocol::SwarmState{.choking = false, .interested = false});
      });
    if (swarm::Peer::understands(message) || std::holds_alternative<protocol::SwarmMembers>(message)) return;
    seen.sent[client].push_back(message);
  }
  void tell_held(ClientId client, const protocol::ObjectId& id) {
    const auto* object = disks_.find(client, id);
    if (object == nullptr) return;
    seeder_->received(client, protocol::ChunksHeld{id, object->has.bytes(), {}});
  }
  void open(bool full = false) {
    found_ = disk_.written().journal;
    found_rounds_ = disk_.rounds();
    if (full) (void)disk_.open(true);
    RunParts parts = *disk_.open(false);
    started_ = parts.recovered.time;
    started_at_ = clock_.point;
    seeder_ = std::make_unique<Seeder>(
        std::make_unique<ManualClock::View>(clock_, clock_.seeder), 0,
        Seeder::Owner{.peers = peers_,
                      .seed = scene_.config.seed,
                      .on_misbehaved = [](ClientId, const std::string& reason) { FAIL(reason); }});
    host_ = std::make_shared<RunHost>(
        RunHost::House{
            .io = io_,
            .clock = std::make_unique<ManualClock::View>(clock_, clock_.run),
            .peers = peers_,
            .is_welcome = [](const auto&) { return true; },
            .misbehaved = [this](ClientId client, const std::string&) { seen.unasked.push_back(client); },
            .data_directory = disk_.directory(),
            .directory = nullptr,
            .announcer = nullptr,
            .seeder = seeder_.get(),
            .warmup_seeds = [this](TaskId task) { return scene_.warmup_seeds(task); }},
        std::move(parts),
        RunHost::Callbacks{
            .on_round = [this](const RoundMetrics& metrics) { seen.add_round(metrics), ++activity_; },
            .on_event = [this](const Event& event) { report(event); },
            .on_waiting = [](const std::string&) {},
            .on_models = [](const std::vector<FinalModel>&, const std::string&) { return Result<void>(); },
            .on_over = [this](RunStatus, const std::string&) { seen.over = true; },
            .on_failure = [](const Error& error) { FAIL(error.message); }});
    const auto prepared = host_->prepare();
    REQUIRE_MESSAGE(prepared, prepared.error().message);
    host_->start();
    settle();
  }
  void close() {
    if (running()) host_->leave();
    host_->shut_down();
    while (io_.poll() > 0) io_.restart();
    io_.restart();
    host_.reset();
    seeder_.reset();
  }
  void report(const Event& event) {
    Event shown = event;
    std::erase_if(shown.fields, [](const auto& field) { return field.first == "run"; });
    seen.report(shown);
    ++activity_;
  }
  // Returns when the threads are idle, the journal is durable, and nothing has happened since. A result may
  // pass two threads before it shows.
  void settle() {
    Written& written = disk_.written();
    for (int quiet = 0; quiet < 3 && running(); ++quiet) {
      const std::uint64_t before = activity_;
      bool done = false;
      host_->when_settled([&] { done = true; });
      while (!done) {
        io_.restart();
        io_.run_one_for(std::chrono::milliseconds(200));
      }
      io_.restart();
      while (io_.poll_one() > 0) ++activity_;
      if (clock_.ring(clock_.seeder)) ++activity_;
      activity_ += std::exchange(written.fresh, 0);
      if (activity_ != before) quiet = -1;
    }
    for (; looked_ < written.journal.size(); ++looked_) {  // the journal also has the sums
      const auto record = decode_record(written.journal[looked_].input);
      REQUIRE(record);
      if (std::holds_alternative<RunEngine::Input>(*record))
        seen.inputs.push_back(written.journal[looked_].input);
    }
    seen.served.clear();
    seen.asked.clear();
    for (const auto& [client, link] : peers_.links()) {
      const auto& memory = static_cast<const MemoryLink&>(*link);
      seen.served[client] = memory.served().size();
      if (running() && memory.asked() > 0) seen.asked.insert(client);
    }
    seen.deadline = running() ? deadline() : std::nullopt;
  }

  const Scene& scene_;
  const ClientDisks& disks_;
  DaemonDisk disk_;
  boost::asio::io_context io_;
  ManualClock clock_;
  Peers peers_;
  Time started_{};  // of the run's clock, when this process began
  RunClock::Point started_at_{};
  std::uint64_t activity_ = 0;
  std::vector<JournalEntry> found_;
  std::uint64_t found_rounds_ = 0;
  std::size_t looked_ = 0;  // at entries of the journal
  std::unique_ptr<Seeder> seeder_;
  std::shared_ptr<RunHost> host_;
};

}  // namespace fedge::server::shells
