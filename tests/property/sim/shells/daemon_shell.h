// The coordinator's shell: a real RunHost with its ports, journal, worker and checkpoints. Links, stores and
// the clock are in memory.
#pragma once

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <memory>
#include <optional>

#include "server/coordinator/detail/run_host.h"
#include "server/data_directory.h"
#include "server/engine/make_engine.h"
#include "server/store/input_codec.h"
#include "tests/property/sim/shells/manual_clock.h"
#include "tests/property/sim/shells/memory_link.h"
#include "tests/property/sim/shells/memory_stores.h"
#include "tests/property/sim/shells/observed.h"
#include "tests/property/sim/shells/scene.h"

namespace fedge::server::shells {

class DaemonShell {
 public:
  DaemonShell(const Scene& scene, const std::filesystem::path& directory)
      : scene_(scene),
        directory_(directory),
        models_(protocol::make_memory_chunk_store(std::size_t{1} << 28)),
        updates_(protocol::make_memory_chunk_store(std::size_t{1} << 28)) {
    written_->record = {.number = RunNumber(1), .id = scene.config.id, .status = RunStatus::kRunning};
    std::filesystem::create_directories(run_directory(directory_, written_->record.number));
    open();
  }
  ~DaemonShell() { close(); }
  DaemonShell(const DaemonShell&) = delete;
  DaemonShell& operator=(const DaemonShell&) = delete;

  void link(ClientId client) {
    peers_.add(client, std::make_shared<MemoryLink>(node_key(client).public_key(),
                                                    [this, client](const protocol::Message& message) {
                                                      seen.sent[client].push_back(message);
                                                      ++activity_;
                                                    }));
    if (running()) host_->joined(client);
    settle();
  }
  void leave(ClientId client, bool for_good) {
    const auto link = link_of(client);
    peers_.remove(client);
    link->end();
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
  void stop(const std::string& reason) {
    if (running()) host_->end(reason);
    settle();
  }
  // The time passes; returns after what was due then.
  void pass(Duration time) {
    clock_.point += std::chrono::duration_cast<RunClock::Point::duration>(time);
    if (clock_.due && clock_.due->first <= clock_.point) std::exchange(clock_.due, std::nullopt)->second();
    settle();
  }
  struct Crash {
    std::size_t entries = 0;       // of the journal that were durable
    bool lost_checkpoint = false;  // one that came right after them was not
    bool full = false;             // the next process finds the disk full at its first attempt
  };
  // The process is killed, and another one begins. Returns the time of the run's clock.
  Time restart(const Crash& crash) {
    close();
    written_->journal.resize(std::min(crash.entries, written_->journal.size()));
    std::erase_if(written_->checkpoints, [&](const auto& one) {
      return one.first > crash.entries || (one.first == crash.entries && crash.lost_checkpoint);
    });
    looked_ = 0;
    seen.inputs.clear();
    for (const auto& [client, link] : peers_.links()) std::static_pointer_cast<MemoryLink>(link)->end();
    peers_ = {};
    open(crash.full);
    return started_;
  }
  std::optional<Time> deadline() const {
    if (!clock_.due) return std::nullopt;
    return started_ + (clock_.due->first - started_at_);
  }
  Time now() const { return started_ + (clock_.point - started_at_); }
  const Written& written() const { return *written_; }
  // Returns what the present process found in the journal.
  const std::vector<JournalEntry>& before_restart() const { return found_; }
  std::uint64_t rounds_before_restart() const { return found_rounds_; }
  // Returns the entries that are durable whatever happens: a stored update was promised.
  std::size_t promised() const {
    std::size_t promised = 0;
    for (std::size_t i = 0; i < written_->journal.size(); ++i) {
      const auto record = decode_record(written_->journal[i].input);
      const auto* input = record ? std::get_if<RunEngine::Input>(&*record) : nullptr;
      if (input != nullptr && std::holds_alternative<RunEngine::Stored>(*input)) promised = i + 1;
    }
    return promised;
  }

  Observed seen;

 private:
  bool running() const { return !seen.over; }
  std::shared_ptr<MemoryLink> link_of(ClientId client) const {
    return std::static_pointer_cast<MemoryLink>(peers_.find(client));
  }
  void open(bool full = false) {
    found_ = written_->journal;
    found_rounds_ = written_->checkpoints.empty() ? 0 : written_->checkpoints.back().second.rounds;
    if (full) (void)open_parts(true);
    RunParts parts = *open_parts(false);
    started_ = parts.recovered.time;
    started_at_ = clock_.point;
    host_ = std::make_shared<RunHost>(
        RunHost::House{.io = io_,
                       .clock = std::make_unique<ManualClock::View>(clock_),
                       .peers = peers_,
                       .is_welcome = [](const auto&) { return true; },
                       .misbehaved = [](ClientId, const std::string& sent) { FAIL("misbehaved: " << sent); },
                       .data_directory = directory_,
                       .directory = nullptr,
                       .announcer = nullptr,
                       .seeder = nullptr},
        std::move(parts),
        RunHost::Callbacks{
            .on_round = [this](const RoundMetrics& metrics) { seen.add_round(metrics), ++activity_; },
            .on_event = [this](const Event& event) { report(event); },
            .on_waiting = [](const std::string&) {},
            .on_models = [](const std::vector<FinalModel>&) { return Result<void>(); },
            .on_over = [this](RunStatus, const std::string&) { seen.over = true; },
            .on_failure = [](const Error& error) { FAIL(error.message); }});
    const auto prepared = host_->prepare();
    REQUIRE_MESSAGE(prepared, prepared.error().message);
    host_->start();
    settle();
  }
  // With `full`, there is no room for a model while the journal is told again; nothing is returned if one was
  // needed.
  std::optional<RunParts> open_parts(bool full) {
    RunParts parts{
        .record = written_->record,
        .model = *learn::make_model(scene_.config.task.model, scene_.test->shape, scene_.test->classes),
        .test = scene_.test};
    parts.store = std::make_unique<MemoryRuns>(written_);
    parts.models = std::make_unique<DeferredRemovals>(std::make_unique<LentChunks>(models_, full_));
    parts.updates = std::make_unique<LentChunks>(updates_, full_);
    parts.threads = std::make_unique<ThreadPool>(1);
    auto state = RunState::create(scene_.config, *parts.model, *parts.test, *parts.models, *parts.threads);
    REQUIRE(state);
    parts.state = std::make_unique<RunState>(std::move(*state));
    auto engine = make_engine(*parts.state);
    REQUIRE(engine);
    Recovery recovery({*parts.store, parts.record.number, *parts.state, *parts.updates});
    parts.conductor = std::make_unique<Conductor>(
        Conductor::Setup{.config = parts.state->config(),
                         .layout = parts.state->rules().layout,
                         .samples_of = [](ClientId) { return std::optional<std::uint64_t>(7); }},
        std::move(*engine), recovery.ports());
    full_ = full;
    auto recovered = recovery.run(*parts.conductor);
    full_ = false;
    if (full && !recovered && recovered.error().code == ErrorCode::kResource) return std::nullopt;
    REQUIRE_MESSAGE(recovered, recovered.error().message);
    parts.recovered = std::move(*recovered);
    return parts;
  }
  void close() {
    if (running()) host_->leave();
    host_->shut_down();
    while (io_.poll() > 0) io_.restart();
    io_.restart();
    host_.reset();
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
      activity_ += std::exchange(written_->fresh, 0);
      if (activity_ != before) quiet = -1;
    }
    for (; looked_ < written_->journal.size(); ++looked_) {  // the journal also has the sums
      const auto record = decode_record(written_->journal[looked_].input);
      REQUIRE(record);
      if (std::holds_alternative<RunEngine::Input>(*record))
        seen.inputs.push_back(written_->journal[looked_].input);
    }
    seen.served.clear();
    for (const auto& [client, link] : peers_.links())
      seen.served[client] = std::static_pointer_cast<MemoryLink>(link)->served().size();
    seen.deadline = running() ? deadline() : std::nullopt;
  }

  const Scene& scene_;
  std::filesystem::path directory_;
  std::shared_ptr<protocol::ChunkStore> models_;
  std::shared_ptr<protocol::ChunkStore> updates_;
  std::shared_ptr<Written> written_ = std::make_shared<Written>();
  boost::asio::io_context io_;
  ManualClock clock_;
  Peers peers_;
  Time started_{};  // of the run's clock, when this process began
  RunClock::Point started_at_{};
  std::uint64_t activity_ = 0;
  bool full_ = false;
  std::vector<JournalEntry> found_;
  std::uint64_t found_rounds_ = 0;
  std::size_t looked_ = 0;  // at entries of the journal
  std::shared_ptr<RunHost> host_;
};

}  // namespace fedge::server::shells
