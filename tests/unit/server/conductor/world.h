// A conductor whose ports write down what it asks of them.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "server/conductor/retelling.h"
#include "tests/unit/server/engine_harness.h"

namespace fedge::server {

struct RecordedWorld : Clients, Models, Updates, Exchange, Aggregate, Gate, Owner {
  enum class Kind { kDirect, kServerless, kSecure };

  explicit RecordedWorld(Kind kind = Kind::kDirect) {
    config.id = kRun;
    config.round_deadline = seconds(60);
    config.sampling.clients_per_round = 3;
    config.task.data.partition.clients = 10;
    config.dissemination.serverless = config.dissemination.swarm = kind == Kind::kServerless;
    config.secure.on = kind == Kind::kSecure;
    harness.rules.chunk_size = 4096;
    if (config.secure.on) harness.rules.masked = protocol::Codec::kMasked64;
    model.coverage = Coverage::all(kParameters);
    model.payload_size = 4 * kParameters;
    model.chunk_size = 4096;
    model.chunks = {Digest{1}};
  }
  Conductor& start() {
    harness.engine();
    conductor = std::make_unique<Conductor>(setup(), std::move(harness.engine_), ports());
    return *conductor;
  }
  // The process ends, and another one is told the journal.
  void restart() {
    harness.engine_.reset();
    present.clear();
    log.clear();
    Past past(*this);
    harness.engine();
    conductor = std::make_unique<Conductor>(setup(), std::move(harness.engine_), past.ports(follower));
    for (const auto& [input, time] : journal) REQUIRE(conductor->retell(input, time));
    CHECK(log.empty());
    conductor->take_over(ports());
    conductor->resume(now);
  }
  // These clients connect and are ready.
  void arrive(std::initializer_list<std::uint32_t> clients) {
    for (const std::uint32_t client : clients) {
      present.insert(ClientId(client));
      conductor->linked(ClientId(client), now);
      answer(client);
    }
  }
  void answer(std::uint32_t client) {
    conductor->received(ClientId(client), protocol::RunAnswer{kRun, true, SampleCount(60)}, now);
  }
  void leave(std::uint32_t client) {
    present.erase(ClientId(client));
    conductor->left(ClientId(client), false, now);
  }
  void offer(std::uint32_t client, std::uint32_t round = 1) {
    protocol::UpdateOffer offered = harness.offer(round);
    offered.update.payload_size = 4 * kParameters;
    offered.update.chunk_size = 4096;
    offered.update.chunks = {Digest{static_cast<std::uint8_t>(100 + client)}};
    offers[ClientId(client)] = offered;
    conductor->received(ClientId(client), offered, now);
  }
  // Carries out the decisions that the gate holds.
  void open_gate() {
    holds = false;
    while (!held.empty()) {
      const Decision decision = std::move(held.front());
      held.pop_front();
      conductor->carry_out(decision, now);
    }
  }
  std::size_t count(const std::string& line) const {
    return static_cast<std::size_t>(std::ranges::count(log, line));
  }
  std::size_t place(const std::string& line) const {
    return static_cast<std::size_t>(std::ranges::find(log, line) - log.begin());
  }

  // --- ports ---
  bool connected(ClientId client) const override { return present.contains(client); }
  PublicKey key_of(ClientId) const override { return SecretKey::generate().public_key(); }
  void send(ClientId client, const protocol::Message& message) override {
    note(std::string(protocol::name_of(message)) + " to", client);
    if (const auto* request = std::get_if<protocol::TrainRequest>(&message)) requests.push_back(*request);
    if (const auto* verdict = std::get_if<protocol::UpdateVerdict>(&message)) verdicts[client] = *verdict;
  }
  void release(ClientId) override {}
  void give(const RunEngine::Assign& work, RoundNumber) override { note("give", work.client); }
  void take_back(ClientId client, TaskId) override { note("take back", client); }
  void fetch(const RunEngine::Fetch& offered) override { note("fetch", offered.client); }
  void discard(ClientId client, TaskId) override { note("discard", client); }
  bool watch(const protocol::Manifest&) override { return true; }
  void admit(ClientId, const protocol::ObjectId&) override {}
  void let_go(const protocol::ObjectId&) override {}
  void fetch(const protocol::Manifest&) override { log.emplace_back("fetch the clients' model"); }
  void pause(const protocol::ObjectId&) override { log.emplace_back("pause the fetch"); }
  void abandon(const protocol::ObjectId&) override { log.emplace_back("abandon the clients' model"); }
  bool obtainable(const protocol::ObjectId&) const override { return obtains; }
  const swarm::ChunkSet* chunks_of(ClientId, const protocol::ObjectId&) const override { return nullptr; }
  bool listens(ClientId) const override { return true; }
  void introduce(ClientId, const std::vector<ClientId>&, const protocol::ObjectId&) override {}
  swarm::RoundWarmup::Seeds warmup_seeds(TaskId) override { return {1, 2}; }
  TrackView view(TrackId) const override { return {&model, nullptr, {}}; }
  Result<void> start(const RunEngine::StartTrack&) override { return {}; }
  void retire(TrackId) override {}
  void fold(const RunEngine::Fold& accepted) override { note("fold", accepted.client); }
  void folded_by_clients(const RunEngine::Fold& accepted) override {
    note("left to clients", accepted.client);
  }
  void count(const RunEngine::Count& zeros) override { note("zeros", zeros.client); }
  void open_sum(std::vector<Range>, std::size_t) override {}
  void fold_masked(const RunEngine::Fold& accepted, std::vector<std::uint64_t>) override {
    note("fold masked", accepted.client);
  }
  void sum_up(TaskId, privacy::Unmasking) override { log.emplace_back("sum up"); }
  void close(const RunEngine::CloseRound& turn, const Made& made) override {
    log.push_back("close " + std::to_string(turn.round.value()));
    closed.push_back(made);
    turns.push_back(turn);
  }
  void record(const RunEngine::Input& input) override {
    journal.emplace_back(input, now);
    if (const auto* left = std::get_if<RunEngine::ClientLeft>(&input)) note("input left", left->client);
    if (const auto* failed = std::get_if<RunEngine::Failed>(&input)) note("input failed", failed->client);
    if (std::holds_alternative<RunEngine::Stored>(input)) log.emplace_back("input stored");
    if (std::holds_alternative<RunEngine::Committed>(input)) log.emplace_back("input committed");
  }
  void enter(Decision decision) override {
    if (holds)
      held.push_back(std::move(decision));
    else
      conductor->carry_out(decision, now);
  }
  void report(const Event& event) override {
    log.push_back(event.name);
    events.push_back(to_string(event));
  }
  void settled(bool) override {}
  void finished(const std::string& reason) override { log.push_back("finished: " + reason); }
  void failed(const Error& error) override { log.push_back("failed: " + error.message); }

  // The models of a run that is told again.
  struct Past final : Retelling {
    explicit Past(RecordedWorld& of) : world(of) {}
    TrackView view(TrackId) const override { return {&world.model, nullptr, {}}; }
    Result<void> start(const RunEngine::StartTrack&) override { return {}; }
    void retire(TrackId) override {}
    void fold(const RunEngine::Fold& accepted) override {
      world.retold.push_back("fold " + std::to_string(accepted.client.value()));
    }
    void count(const RunEngine::Count&) override {}
    bool closed_before(const RunEngine::CloseRound& turn) override {
      return turn.round.value() <= world.kept_rounds;
    }
    void close(const RunEngine::CloseRound& turn, const Made&) override {
      world.retold.push_back("close " + std::to_string(turn.round.value()));
    }
    RecordedWorld& world;
  };
  Conductor::Setup setup() const {
    return {config, kLayout, [](ClientId) { return std::optional<std::uint64_t>(60); }};
  }
  Ports ports() { return {this, this, this, this, this, this, this, nullptr, follower}; }

  void note(const std::string& what, ClientId client) {
    log.push_back(what + " " + std::to_string(client.value()));
  }

  Harness harness;  // of the engine
  run::RunConfig config;
  protocol::Manifest model;
  std::unique_ptr<Conductor> conductor;
  Watch* follower = nullptr;
  Time now{};
  std::set<ClientId> present;
  bool holds = false;   // decisions stay in `held`
  bool obtains = true;  // clients together have all chunks
  std::deque<Decision> held;
  std::vector<std::pair<RunEngine::Input, Time>> journal;
  std::uint64_t kept_rounds = 0;    // whose models a restart finds
  std::vector<std::string> retold;  // what a restart asked of its aggregate
  std::vector<std::string> log;
  std::vector<std::string> events;
  std::vector<protocol::TrainRequest> requests;
  std::map<ClientId, protocol::UpdateOffer> offers;
  std::map<ClientId, protocol::UpdateVerdict> verdicts;
  std::vector<Made> closed;
  std::vector<RunEngine::CloseRound> turns;
};

}  // namespace fedge::server
