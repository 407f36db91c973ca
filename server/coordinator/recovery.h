// Recovery restores a run from its store. It tells the run's conductor every journal input again, at its
// original time, so that the engine and the route reach the same state. Models are not computed again, except
// in rounds after the last checkpoint: it reads their updates from the chunk store and aggregates them to
// bit-identical models. If the disk lost an update, its client counts as disconnected before the update was
// stored, and will be asked for it again. Cost: an engine step for each entry, and one hash over each payload
// since the checkpoint.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "core/event.h"
#include "server/conductor/retelling.h"
#include "server/coordinator/uploads.h"
#include "server/run_state.h"
#include "server/split/half_files.h"
#include "server/store/input_codec.h"
#include "server/store/journal_reader.h"
#include "server/store/run_store.h"

namespace fedge::server {

struct Recovered {
  std::uint64_t entries = 0;  // number of journal entries
  Time time{};                // of the last entry
  std::vector<RoundMetrics> history;
  std::optional<aggregation::Policy> policy;  // last policy given to the engine
  // Track phases that were closed (durably, if they end a round) but not yet committed in the engine.
  std::vector<RunEngine::CloseRound> closed;
  bool finished = false;         // all rounds are done
  std::optional<Error> failure;  // the strategy failed; no entry after it counts
  std::vector<std::shared_ptr<protocol::StoredObject>> folded;    // updates aggregated in the current round
  std::vector<std::shared_ptr<protocol::StoredObject>> arriving;  // partially received updates
  std::vector<LostUpdate> lost;                                   // to be added to the journal
  std::vector<Event> events;                                      // about lost updates
};

class Recovery final : private Retelling {
 public:
  struct Parts {
    RunStore& store;
    RunNumber run;
    RunState& state;  // fresh
    protocol::ChunkStore& updates;
    HalfFiles halves;  // split training
  };
  explicit Recovery(const Parts& parts) : parts_(parts) {}

  // For the conductor of run().
  using Retelling::ports;
  // kCorrupt: a required file or entry is damaged; the message names it.
  Result<Recovered> run(Conductor& conductor);

 private:
  Result<void> take(Conductor& conductor, JournalStep step);
  // Returns the input that replaces a Stored whose update is lost; otherwise the input itself.
  Result<RunEngine::Input> checked(const RunEngine::Stored& stored, std::uint64_t sequence);
  // Tells of the sum of a secure phase, which the journal holds.
  Result<void> take_up_sum(Conductor& conductor, const SummedTurn& turn);
  Result<void> take_up(const RunEngine::Fold& accepted);
  Result<void> keep(const RunEngine::CloseRound& close);
  // Returns whether the checkpoint already contains the current round.
  bool is_kept() const { return closed_rounds_ < kept_rounds_; }

  void fetch(const RunEngine::Fetch& offered) override;
  void discard(ClientId client, TaskId) override { offered_.erase(client); }
  // Clients hear nothing, so no model is described to them.
  TrackView view(TrackId) const override { return {&no_model_, nullptr, {}}; }
  Result<void> start(const RunEngine::StartTrack& start) override;
  void retire(TrackId track) override;
  void fold(const RunEngine::Fold& accepted) override {
    step([&] { return take_up(accepted); });
  }
  void count(const RunEngine::Count& zeros) override;
  bool closed_before(const RunEngine::CloseRound& turn) override;
  void close(const RunEngine::CloseRound& turn, const Made&) override;
  void finished(const std::string&) override { result_.finished = true; }

  Parts parts_;
  Recovered result_;
  std::optional<Checkpoint> checkpoint_;
  std::uint64_t kept_rounds_ = 0;    // rounds in the checkpoint
  std::uint64_t closed_rounds_ = 0;  // rounds replayed so far
  protocol::Manifest no_model_;
  RunState::Descriptions descriptions_;
  std::map<ClientId, protocol::Manifest> offered_;  // updates being fetched
  std::map<ClientId, run::StoredUpdate> uploads_;   // updates to be folded
};

}  // namespace fedge::server
