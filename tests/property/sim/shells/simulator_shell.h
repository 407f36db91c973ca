// The simulator's shell: its aggregate, and ports without latency. Every port answers at once, and nothing is
// written. What the coordinator's shell does must come to the same.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>

#include "server/engine/make_engine.h"
#include "server/run_state.h"
#include "server/store/input_codec.h"
#include "sim/coordinator/virtual_aggregate.h"
#include "tests/property/sim/shells/arrived_updates.h"
#include "tests/property/sim/shells/observed.h"
#include "tests/property/sim/shells/scene.h"
#include "tests/property/sim/shells/simulated_exchange.h"
#include "tests/property/sim/shells/told_models.h"

namespace fedge::server::shells {

class SimulatorShell final : Clients, Models, Updates, Aggregate, Gate, Owner {
 public:
  SimulatorShell(const Scene& scene, const ClientDisks& disks) : scene_(scene), disks_(disks) {
    begin();
    conductor_ = std::make_unique<Conductor>(setup(), engine(), ports());
    aggregate_->answer_to(*conductor_);
  }

  void link(ClientId client) {
    here_.insert(client);
    if (!seen.over) conductor_->linked(client, now);
    settle();
  }
  void leave(ClientId client, bool for_good) {
    here_.erase(client);
    fetches_.erase(client);
    given_.erase(client);
    if (exchange_) exchange_->gone(client);
    if (!seen.over) conductor_->left(client, for_good, now);
    settle();
  }
  void receive(ClientId client, const protocol::Message& message) {
    if (!seen.over && conductor_->received(client, message, now) == Heard::kUnasked)
      seen.unasked.push_back(client);
    settle();
  }
  // The client has computed this update, which other clients may fetch.
  void hold(ClientId client, const sim::TrainedUpdate& update) {
    held_.insert_or_assign({client, update.task}, update);
  }
  void announce(ClientId client, const protocol::ObjectId& object) {
    if (!seen.over) exchange_->announce(client, object);
    settle();
  }
  void answer_requests(ClientId client, const std::optional<Error>& fault) {
    exchange_->answer_requests(client, fault);
    settle();
  }
  void set_room(bool room) { room_ = room; }
  // The update that the coordinator fetches arrives; with `fault`, the transfer fails.
  void deliver(ClientId client, const protocol::Manifest& update, const Delivery& delivery,
               const std::optional<Error>& fault) {
    const auto wanted = fetches_.find(client);
    if (wanted == fetches_.end() || !(wanted->second.offer.update == update)) return;
    const TaskId task = wanted->second.offer.task();
    fetches_.erase(wanted);
    Result<void> outcome = fault ? Result<void>(*fault) : Result<void>();
    sim::TrainedUpdate trained{.task = task,
                               .coverage = delivery.coverage,
                               .training = {.samples = delivery.samples, .mean_loss = delivery.loss},
                               .values = delivery.values};
    if (!fault && !delivery.masking) outcome = aggregate_->inspect(client, trained);
    if (outcome) updates_.keep(client, std::move(trained), delivery.masking);
    conductor_->uploaded(client, task, outcome, now);
    settle();
  }
  void stop(const std::string& reason) {
    if (!seen.over) conductor_->submit(RunEngine::Stop{reason}, now);
    settle();
  }
  void pass(Duration time) {
    now += time;
    if (const auto due = conductor_->next_deadline(); !seen.over && due && now >= *due)
      conductor_->expired(now);
    settle();
  }
  // Another process begins, at this time of the run's clock. It knows these records of the former ones, and
  // that they closed this many rounds.
  void restart(Time then, const std::vector<JournalEntry>& records, std::uint64_t kept) {
    now = then;
    former_.cut(records);
    seen.inputs.resize(former_.journal.size());
    here_.clear();
    fetches_.clear();
    given_.clear();
    conductor_.reset();
    begin();
    ToldModels past(*state_, *store_, former_, kept, then);
    conductor_ = std::make_unique<Conductor>(setup(), engine(), past.ports());
    past.tell(*conductor_);
    former_.folded.resize(past.folded());
    aggregate_->answer_to(*conductor_);
    for (const auto& [accepted, update] : past.open()) hand_over(accepted, update);
    conductor_->take_over(ports());
    seen.over = past.ended();
    if (!past.ended()) {
      if (!former_.journal.empty()) conductor_->resume(now);
      for (const auto& turn : past.uncommitted)
        conductor_->submit(RunEngine::Committed{turn.round, turn.track}, now);
    }
    settle();
  }

  Time now{};
  Observed seen;

 private:
  void begin() {
    aggregate_.reset();
    state_.reset();
    updates_ = {};
    exchange_.reset();
    if (scene_.config.dissemination.serverless)
      exchange_ = std::make_unique<SimulatedExchange>(
          scene_, disks_, now, room_, [this](const protocol::ObjectId& model, const Result<void>& outcome) {
            if (!seen.over) conductor_->fetched(model, outcome, now);
          });
    store_ = protocol::make_memory_chunk_store(std::size_t{1} << 28);
    state_.emplace(*RunState::create(scene_.config, *scene_.model, scene_.test.get(), *store_, pool_));
    aggregate_.emplace(sim::VirtualAggregate::Surroundings{
        .state = *state_,
        .updates = updates_,
        .adversary = nullptr,
        .parallel = pool_,
        .log = log_,
        .masking = [this](ClientId client) -> const privacy::Masking& { return updates_.masking(client); },
        .now = [this] { return now; },
        .circumstances = [] { return RunState::Circumstances(); },
        .on_round = [this](const RoundMetrics& metrics) { seen.add_round(metrics); },
        .on_adopted = [](const MadeByClients&, const protocol::ObjectId&) {},
        // A client's own log; the coordinator does not have it.
        .on_event = [](const Event& event) { CHECK(event.name == "training.failed"); },
        .on_failure = [](const Error& error) { FAIL(error.message); }});
  }
  std::unique_ptr<RunEngine> engine() { return *make_engine(*state_); }
  Conductor::Setup setup() const {
    return {.config = state_->config(), .layout = state_->rules().layout, .samples_of = [](ClientId) {
              return std::optional<std::uint64_t>(7);
            }};
  }
  Ports ports() { return {this, this, this, exchange_.get(), this, this, this}; }
  void settle() {
    if (exchange_ && !seen.over) exchange_->run();
    seen.served.clear();
    seen.asked.clear();
    // A task's model, unless a swarm brings it, and with SCAFFOLD the control variate.
    for (const auto& [client, task] : given_)
      if (here_.contains(client) && !seen.over && !exchange_)
        seen.served[client] = state_->track(task.track).control_object() ? 2 : 1;
    for (const ClientId client : here_)
      if (exchange_ && !seen.over && exchange_->requests(client)) seen.asked.insert(client);
    seen.deadline = seen.over ? std::nullopt : conductor_->next_deadline();
  }
  bool connected(ClientId client) const override { return here_.contains(client); }
  PublicKey key_of(ClientId client) const override { return node_key(client).public_key(); }
  void send(ClientId client, const protocol::Message& message) override {
    if (here_.contains(client)) seen.sent[client].push_back(message);
  }
  void release(ClientId client) override { given_.erase(client); }
  void give(const RunEngine::Assign& work, RoundNumber) override {
    given_[work.client] = work.task;
    if (exchange_) exchange_->give(work.client, work.task, *state_->view(work.task.track).model);
  }
  void take_back(ClientId client, TaskId task) override {
    if (exchange_) exchange_->done(client, task);
    if (const auto found = given_.find(client); found != given_.end() && found->second == task)
      given_.erase(found);
  }
  void fetch(const RunEngine::Fetch& offered) override { fetches_.insert_or_assign(offered.client, offered); }
  void discard(ClientId client, TaskId) override {
    fetches_.erase(client);
    updates_.drop(client);
  }
  // The simulator's aggregate does the work; what a later process needs of it is kept.
  TrackView view(TrackId track) const override { return aggregate_->view(track); }
  Result<void> start(const RunEngine::StartTrack& start) override { return aggregate_->start(start); }
  void retire(TrackId track) override { aggregate_->retire(track); }
  void fold(const RunEngine::Fold& accepted) override {
    former_.folded.push_back(*updates_.find(accepted.client, accepted.task));
    aggregate_->fold(accepted);
  }
  void folded_by_clients(const RunEngine::Fold& accepted) override {
    former_.folded.push_back(held_.at({accepted.client, accepted.task}));
    hand_over(accepted, former_.folded.back());
  }
  void hand_over(const RunEngine::Fold& accepted, const sim::TrainedUpdate& update) {
    REQUIRE(aggregate_->inspect_and_hold(accepted.client, update));
    aggregate_->folded_by_clients(accepted);
  }
  void count(const RunEngine::Count& zeros) override { aggregate_->count(zeros); }
  void open_sum(std::vector<Range> cells, std::size_t task_sums) override {
    aggregate_->open_sum(std::move(cells), task_sums);
  }
  void fold_masked(const RunEngine::Fold& accepted, std::vector<std::uint64_t> scalars) override {
    aggregate_->fold_masked(accepted, std::move(scalars));
  }
  void sum_up(TaskId task, privacy::Unmasking unmasking) override {
    auto sum = state_->sum_up(task, unmasking);
    if (!sum) return conductor_->summed(sum.error(), now);
    state_->remove(*sum);
    former_.sums.insert_or_assign(former_.journal.size(), *sum);
    conductor_->summed(MaskedSum{sum->train_loss, sum->bad_shares}, now);
  }
  void close(const RunEngine::CloseRound& turn, const Made& made) override {
    former_.made[turn.round] = !std::holds_alternative<NotMade>(made);
    aggregate_->close(turn, made);
  }
  void record(const RunEngine::Input& input) override {
    former_.journal.emplace_back(input, now);
    seen.inputs.push_back(encode_record(input));
  }
  void enter(Decision decision) override { conductor_->carry_out(decision, now); }
  void report(const Event& event) override { seen.report(event); }
  void settled(bool) override {}
  void finished(const std::string&) override {
    conductor_->stop();
    seen.over = true;
  }
  void failed(const Error& error) override { FAIL(error.message); }

  const Scene& scene_;
  const ClientDisks& disks_;
  ThreadPool pool_{1};
  std::unique_ptr<protocol::ChunkStore> store_;
  std::optional<RunState> state_;
  std::unique_ptr<Conductor> conductor_;
  std::set<ClientId> here_;
  std::map<ClientId, TaskId> given_;
  std::map<ClientId, RunEngine::Fetch> fetches_;
  ArrivedUpdates updates_;
  sim::RunLog log_;
  std::map<std::pair<ClientId, TaskId>, sim::TrainedUpdate> held_;  // by clients of a serverless run
  std::unique_ptr<SimulatedExchange> exchange_;                     // null in other runs
  bool room_ = true;
  std::optional<sim::VirtualAggregate> aggregate_;
  Former former_;
};

}  // namespace fedge::server::shells
