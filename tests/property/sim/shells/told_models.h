// The models of a run that is told again in the simulator's shell. Every update is folded anew, from the
// first round on: there are no checkpoints.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "run/stored_update.h"
#include "server/conductor/retelling.h"
#include "server/run_state.h"
#include "server/store/input_codec.h"
#include "server/store/run_store.h"
#include "sim/training/training_pool.h"

namespace fedge::server::shells {

// The inputs, updates and sums of former processes.
struct Former {
  std::vector<std::pair<RunEngine::Input, Time>> journal;
  std::vector<sim::TrainedUpdate> folded;        // in the order of their Fold effects
  std::map<std::size_t, RunState::Summed> sums;  // by the number of inputs before them
  std::map<RoundNumber, bool> made;              // serverless rounds; whether clients aggregated their model

  // Keeps only what these records, those of the coordinator's journal, tell of.
  void cut(const std::vector<JournalEntry>& records) {
    std::set<std::size_t> kept;
    std::size_t inputs = 0;
    for (const JournalEntry& entry : records)
      if (std::holds_alternative<SummedTurn>(*decode_record(entry.input)))
        kept.insert(inputs);
      else
        ++inputs;
    journal.resize(inputs, {Expired{}, Time()});
    std::erase_if(sums, [&](const auto& sum) { return !kept.contains(sum.first); });
  }
};

class ToldModels final : public Retelling {
 public:
  // The former processes closed `kept` rounds. `now` is the time at which the present one begins.
  ToldModels(RunState& state, protocol::ChunkStore& store, const Former& former, std::uint64_t kept, Time now)
      : state_(state), store_(store), former_(former), kept_(kept), now_(now) {}

  void tell(Conductor& conductor) {
    for (std::size_t i = 0; i <= former_.journal.size(); ++i) {
      if (const auto sum = former_.sums.find(i); sum != former_.sums.end()) tell(conductor, sum->second);
      if (i < former_.journal.size()) tell(conductor, former_.journal[i].first, former_.journal[i].second);
    }
  }
  bool ended() const { return ended_; }
  // Returns the number of updates folded.
  std::size_t folded() const { return folded_; }
  // Returns the updates that clients aggregate in the round in progress.
  using Open = std::vector<std::pair<RunEngine::Fold, sim::TrainedUpdate>>;
  const Open& open() const { return open_; }
  std::vector<RunEngine::CloseRound> uncommitted;

 private:
  void tell(Conductor& conductor, const RunEngine::Input& input, Time time) {
    REQUIRE(conductor.retell(input, time));
    REQUIRE(outcome());
    if (std::holds_alternative<RunEngine::Committed>(input) && !uncommitted.empty())
      uncommitted.erase(uncommitted.begin());
  }
  // The sum of a secure phase, which the coordinator's journal holds.
  void tell(Conductor& conductor, const RunState::Summed& sum) {
    auto object = store_.create(sum.turn.offer.update);
    REQUIRE(object);
    std::vector<std::byte> bytes;
    for (std::size_t i = 0; i < sum.turn.offer.update.chunk_count(); ++i) {
      bytes.resize(sum.turn.offer.update.chunk_length(i));
      REQUIRE(sum.object->read(i, bytes));
      REQUIRE((*object)->write(i, bytes));
    }
    REQUIRE(state_.take_up_sum(sum.turn));
    conductor.summed(MaskedSum{sum.turn.offer.train_loss, {}}, now_);
    REQUIRE(outcome());
  }
  TrackView view(TrackId track) const override { return state_.view(track); }
  Result<void> start(const RunEngine::StartTrack& start) override { return state_.start(start); }
  void retire(TrackId track) override { state_.retire(track); }
  void fold(const RunEngine::Fold& accepted) override { add(accepted, former_.folded.at(folded_++)); }
  void folded_by_clients(const RunEngine::Fold& accepted) override {
    open_.emplace_back(accepted, former_.folded.at(folded_++));
  }
  void add(const RunEngine::Fold& accepted, const sim::TrainedUpdate& update) {
    const auto norm = run::inspect_values(state_.value_rules(), update.coverage, *update.values);
    REQUIRE(norm);
    add(accepted.task.track, {.client = accepted.client,
                              .weight = accepted.weight,
                              .steps = accepted.steps,
                              .norm = *norm,
                              .factor = accepted.factor,
                              .coverage = update.coverage,
                              .values = update.values});
  }
  void count(const RunEngine::Count& zeros) override {
    add(zeros.task.track,
        {.client = zeros.client, .weight = zeros.weight, .coverage = zeros.coverage, .values = nullptr});
  }
  void add(TrackId track, const aggregation::Update& update) { REQUIRE(state_.fold(track, {&update, 1})); }
  void close(const RunEngine::CloseRound& turn, const Made&) override {
    REQUIRE(state_.close(turn));
    if (turn.ends_round) (void)state_.end_round({});
    uncommitted.push_back(turn);
  }
  // A serverless round, and a secure phase that came to nothing, leave only a checkpoint.
  bool closed_before(const RunEngine::CloseRound& turn) override {
    if (state_.config().dissemination.serverless) {
      if (turn.round.value() > kept_) return false;
      for (const auto& [accepted, update] : std::exchange(open_, {}))
        if (former_.made.at(turn.round)) add(accepted, update);
      close(turn, Folded{});
      return true;
    }
    const auto is_its_sum = [&](const auto& sum) {
      return sum.second.turn.offer.round == turn.round && sum.second.turn.offer.track == turn.track;
    };
    if (!state_.config().secure.on || turn.round.value() > kept_ ||
        std::ranges::any_of(former_.sums, is_its_sum))
      return false;
    close(turn, Folded{});
    return true;
  }
  void finished(const std::string&) override { ended_ = true; }

  RunState& state_;
  protocol::ChunkStore& store_;
  const Former& former_;
  std::uint64_t kept_;
  Time now_;
  std::size_t folded_ = 0;
  Open open_;
  bool ended_ = false;
};

}  // namespace fedge::server::shells
