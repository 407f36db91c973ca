// Recovery: a run goes on from what its store holds. The engine is given every input of the journal again, at
// its time, and so knows and decides what it did; what it wanted done is not done again, but for the rounds
// after the last checkpoint: their updates are read back from the chunk store and aggregated, so that the
// models come out the same bit for bit. An update that the disk has lost is as if its client had left before
// it was stored: it will be asked for again.
// Cost: an engine's step for each entry, one hash over each payload since the checkpoint.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "core/event.h"
#include "core/rng.h"
#include "server/coordinator/uploads.h"
#include "server/engine/run_engine.h"
#include "server/engine/serverless_round.h"
#include "server/run_state.h"
#include "server/store/input_codec.h"
#include "server/store/journal_reader.h"
#include "server/store/run_store.h"

namespace fedge::server {

struct Recovered {
  std::uint64_t entries = 0;  // in the journal
  Time time{};                // of the last one
  std::vector<RoundMetrics> history;
  std::optional<aggregation::Policy> policy;  // the last one that the engine was told
  // Turns that have been carried out, those that end a round durably, but the engine has not been told.
  std::vector<RunEngine::CloseRound> closed;
  // Of a run without a server, its last round; and of such a run, or one with secure sums, a turn that is
  // closed, but its model not made.
  std::optional<ServerlessRound> shared;
  std::optional<RunEngine::CloseRound> unmade;
  bool finished = false;                                          // there is nothing left to do
  std::vector<std::shared_ptr<protocol::StoredObject>> folded;    // updates in the round in progress
  std::vector<std::shared_ptr<protocol::StoredObject>> arriving;  // that had not come to their end
  std::vector<LostUpdate> lost;                                   // to be noted in the journal
  std::vector<Event> events;                                      // about what was lost
};

class Recovery {
 public:
  struct Parts {
    RunStore& store;
    RunNumber run;
    RunEngine& engine;  // fresh, as is
    RunState& state;    // this
    protocol::ChunkStore& updates;
  };
  explicit Recovery(const Parts& parts) : parts_(parts), rng_(parts.state.config().seed) {}

  // kCorrupt: something that is needed is damaged; the message names it.
  Result<Recovered> run();

 private:
  Result<void> take(JournalStep step);
  // What is fed to the engine in place of a Stored whose update is gone; otherwise the input itself.
  Result<RunEngine::Input> checked(const RunEngine::Stored& stored, std::uint64_t sequence);
  Result<void> perform(const RunEngine::Effect& effect);
  Result<void> close(const RunEngine::CloseRound& close);
  Result<void> keep(const RunEngine::CloseRound& close);
  Result<void> fold(const RunEngine::Fold& fold);
  // Of a run without a server, whose updates are its clients'.
  bool is_serverless() const { return parts_.state.config().dissemination.serverless; }
  void share(const RunEngine::Effect& effect);
  void note_departure(const RunEngine::Input& input);
  // Of one with secure sums: masked updates are of no use to another process, what they have come to is.
  bool is_secure() const { return parts_.state.config().secure.on; }
  Result<void> take_up_sum(const SummedTurn& turn);
  Result<void> carry_out(const RunEngine::CloseRound& close);
  // Whether what the engine wants now is in the checkpoint already.
  bool is_kept() const { return closed_rounds_ < kept_rounds_; }

  Parts parts_;
  Rng rng_;
  Recovered result_;
  std::optional<Checkpoint> checkpoint_;
  std::uint64_t kept_rounds_ = 0;    // in the checkpoint
  std::uint64_t closed_rounds_ = 0;  // seen so far
  RunState::Descriptions descriptions_;
  std::map<ClientId, protocol::Manifest> offered_;  // being fetched
  std::map<ClientId, run::StoredUpdate> uploads_;   // about to be folded
  std::vector<protocol::Manifest> masked_;          // offered, of secure sums
};

}  // namespace fedge::server
