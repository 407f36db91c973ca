// The plainest shell of a conductor: every port answers at once, after the effects of the current input, and
// nothing is written. What the coordinator's shell does must come to the same.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>

#include "run/stored_update.h"
#include "server/conductor/retelling.h"
#include "server/coordinator/uploads.h"
#include "server/engine/make_engine.h"
#include "server/run_state.h"
#include "server/store/input_codec.h"
#include "tests/property/server/shells/observed.h"
#include "tests/property/server/shells/scene.h"

namespace fedge::server::shells {

class PlainShell final : Clients, Models, Updates, Aggregate, Gate, Owner {
 public:
  explicit PlainShell(const Scene& scene) : scene_(scene) {
    begin();
    conductor_ = std::make_unique<Conductor>(setup(), engine(), ports());
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
    if (!seen.over) conductor_->left(client, for_good, now);
    settle();
  }
  void receive(ClientId client, const protocol::Message& message) {
    if (!seen.over) conductor_->received(client, message, now);
    settle();
  }
  void deliver(ClientId client, const std::shared_ptr<protocol::StoredObject>& object,
               const std::optional<Error>& fault) {
    const auto wanted = fetches_.find(client);
    if (wanted == fetches_.end() || !(wanted->second.offer.update == object->manifest())) return;
    const TaskId task = wanted->second.offer.task();
    fetches_.erase(wanted);
    Result<void> outcome = fault ? Result<void>(*fault) : Result<void>();
    if (!fault) {
      auto upload = run::examine_update(object, state_->value_rules(), *store_);
      if (upload)
        uploads_[client] = std::move(*upload);
      else
        outcome = upload.error();
    }
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
  // Another process begins, at this time of the run's clock.
  void restart(Time then) {
    now = then;
    here_.clear();
    fetches_.clear();
    given_.clear();
    conductor_.reset();
    begin();
    Past past(*this);
    conductor_ = std::make_unique<Conductor>(setup(), engine(), past.ports());
    for (std::size_t i = 0; i <= journal_.size(); ++i) {
      if (const auto sum = sums_.find(i); sum != sums_.end()) past.tell(*conductor_, sum->second);
      if (i < journal_.size()) past.tell(*conductor_, journal_[i].first, journal_[i].second);
    }
    conductor_->take_over(ports());
    if (!past.ended()) {
      if (!journal_.empty()) conductor_->resume(now);
      for (const auto& turn : past.uncommitted)
        conductor_->submit(RunEngine::Committed{turn.round, turn.track}, now);
    }
    settle();
  }

  Time now{};
  Observed seen;

 private:
  // The updates of the journal are folded again.
  class Past final : public Retelling {
   public:
    explicit Past(PlainShell& shell) : shell_(shell) {}
    void tell(Conductor& conductor, const RunEngine::Input& input, Time time) {
      REQUIRE(conductor.retell(input, time));
      REQUIRE(outcome());
      if (std::holds_alternative<RunEngine::Committed>(input) && !uncommitted.empty())
        uncommitted.erase(uncommitted.begin());
    }
    // The sum of a secure phase, which the coordinator's journal holds.
    void tell(Conductor& conductor, const RunState::Summed& sum) {
      auto object = shell_.store_->create(sum.turn.offer.update);
      REQUIRE(object);
      std::vector<std::byte> bytes;
      for (std::size_t i = 0; i < sum.turn.offer.update.chunk_count(); ++i) {
        bytes.resize(sum.turn.offer.update.chunk_length(i));
        REQUIRE(sum.object->read(i, bytes));
        REQUIRE((*object)->write(i, bytes));
      }
      REQUIRE(shell_.state_->take_up_sum(sum.turn));
      conductor.summed(MaskedSum{sum.turn.offer.train_loss, {}}, shell_.now);
      REQUIRE(outcome());
    }
    bool ended() const { return ended_; }
    std::vector<RunEngine::CloseRound> uncommitted;

   private:
    TrackView view(TrackId track) const override { return shell_.state_->view(track); }
    Result<void> start(const RunEngine::StartTrack& start) override { return shell_.state_->start(start); }
    void retire(TrackId track) override { shell_.state_->retire(track); }
    void fold(const RunEngine::Fold& accepted) override {
      shell_.add(accepted, shell_.folded_.at(shell_.refolded_++));
    }
    void count(const RunEngine::Count& zeros) override { shell_.count(zeros); }
    void close(const RunEngine::CloseRound& turn, const Made&) override {
      REQUIRE(shell_.state_->close(turn));
      if (turn.ends_round) (void)shell_.state_->end_round({});
      uncommitted.push_back(turn);
    }
    void finished(const std::string&) override { ended_ = true; }

    PlainShell& shell_;
    bool ended_ = false;
  };

  void begin() {
    refolded_ = 0;
    state_.reset();
    store_ = protocol::make_memory_chunk_store(std::size_t{1} << 28);
    state_.emplace(*RunState::create(scene_.config, *scene_.model, *scene_.test, *store_, pool_));
  }
  std::unique_ptr<RunEngine> engine() {
    auto made = make_engine(*state_);
    REQUIRE(made);
    return std::move(*made);
  }
  Conductor::Setup setup() const {
    return {.config = state_->config(), .layout = state_->rules().layout, .samples_of = [](ClientId) {
              return std::optional<std::uint64_t>(7);
            }};
  }
  Ports ports() { return {this, this, this, nullptr, this, this, this}; }
  void settle() {
    while (!later_.empty() && !seen.over) {
      const auto next = std::move(later_.front());
      later_.pop_front();
      next();
    }
    seen.served.clear();
    // A task's model, and with SCAFFOLD the control variate.
    for (const auto& [client, task] : given_)
      if (here_.contains(client) && !seen.over)
        seen.served[client] = state_->track(task.track).control_object() ? 2 : 1;
    seen.deadline = seen.over ? std::nullopt : conductor_->next_deadline();
  }
  void add(const RunEngine::Fold& accepted, const run::StoredUpdate& upload) {
    const aggregation::Update update = update_of(accepted, upload);
    REQUIRE(state_->fold(accepted.task.track, {&update, 1}));
  }

  bool connected(ClientId client) const override { return here_.contains(client); }
  PublicKey key_of(ClientId client) const override { return node_key(client).public_key(); }
  void send(ClientId client, const protocol::Message& message) override {
    if (here_.contains(client)) seen.sent[client].push_back(message);
  }
  void release(ClientId client) override { given_.erase(client); }
  void give(const RunEngine::Assign& work, RoundNumber) override { given_[work.client] = work.task; }
  void take_back(ClientId client, TaskId task) override {
    if (const auto found = given_.find(client); found != given_.end() && found->second == task)
      given_.erase(found);
  }
  void fetch(const RunEngine::Fetch& offered) override { fetches_.insert_or_assign(offered.client, offered); }
  void discard(ClientId client, TaskId) override {
    fetches_.erase(client);
    uploads_.erase(client);
  }
  TrackView view(TrackId track) const override { return state_->view(track); }
  Result<void> start(const RunEngine::StartTrack& start) override { return state_->start(start); }
  void retire(TrackId track) override { state_->retire(track); }
  void fold(const RunEngine::Fold& accepted) override {
    folded_.push_back(uploads_.extract(accepted.client).mapped());
    ++refolded_;
    add(accepted, folded_.back());
  }
  void folded_by_clients(const RunEngine::Fold&) override {}
  void count(const RunEngine::Count& zeros) override {
    const aggregation::Update update{
        .client = zeros.client, .weight = zeros.weight, .coverage = zeros.coverage, .values = nullptr};
    REQUIRE(state_->fold(zeros.task.track, {&update, 1}));
  }
  void open_sum(std::vector<Range> cells) override { state_->open_secure(std::move(cells)); }
  void fold_masked(const RunEngine::Fold& accepted, std::vector<std::uint64_t> scalars) override {
    const auto object = uploads_.extract(accepted.client).mapped().arrived;
    REQUIRE(state_->fold_masked(
        accepted.client, {.coverage = &object->manifest().coverage,
                          .read = [&](std::uint64_t first,
                                      std::span<std::byte> out) { return object->read_bytes(first, out); },
                          .scalars = scalars}));
  }
  void sum_up(TaskId task, privacy::Unmasking unmasking) override {
    const auto masks = std::make_shared<privacy::Unmasking>(std::move(unmasking));
    later_.push_back([this, task, masks] {
      auto sum = state_->sum_up(task, *masks);
      if (!sum) return conductor_->summed(sum.error(), now);
      state_->remove(*sum);
      conductor_->summed(MaskedSum{sum->train_loss, sum->bad_shares}, now);
      sums_.emplace(journal_.size(), std::move(*sum));
    });
  }
  void close(const RunEngine::CloseRound& turn, const Made& made) override {
    later_.push_back([this, turn, made] {
      --closing_;
      REQUIRE(state_->close(turn));
      const auto* reason = std::get_if<NotMade>(&made);
      const auto not_made =
          reason != nullptr ? std::optional(reason->reason) : state_->track(turn.track).not_aggregated();
      conductor_->aggregated(turn, not_made, now);
      if (turn.ends_round) seen.add_round(state_->end_round({}));
      if (ending_) return end();
      conductor_->closed(turn, !not_made, now);
    });
    ++closing_;
  }
  void record(const RunEngine::Input& input) override {
    journal_.emplace_back(input, now);
    seen.inputs.push_back(encode_record(input));
  }
  void enter(Decision decision) override { conductor_->carry_out(decision, now); }
  void report(const Event& event) override { seen.report(event); }
  void settled(bool) override {}
  void finished(const std::string&) override {
    if (closing_ == 0 && !conductor_->makes_model()) return end();
    ending_ = true;
  }
  void failed(const Error& error) override { FAIL(error.message); }
  void end() {
    conductor_->stop();
    seen.over = true;
  }

  const Scene& scene_;
  ThreadPool pool_{1};
  std::unique_ptr<protocol::ChunkStore> store_;
  std::optional<RunState> state_;
  std::unique_ptr<Conductor> conductor_;
  std::set<ClientId> here_;
  std::map<ClientId, TaskId> given_;
  std::map<ClientId, RunEngine::Fetch> fetches_;
  std::map<ClientId, run::StoredUpdate> uploads_;
  std::map<std::size_t, RunState::Summed> sums_;  // by the number of inputs before them
  std::vector<run::StoredUpdate> folded_;         // in the order of their Fold effects
  std::size_t refolded_ = 0;
  std::deque<std::function<void()>> later_;
  std::vector<std::pair<RunEngine::Input, Time>> journal_;
  std::size_t closing_ = 0;
  bool ending_ = false;
};

}  // namespace fedge::server::shells
