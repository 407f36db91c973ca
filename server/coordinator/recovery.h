// Recovery restores a run from its store. It gives the engine every journal input again, at its original
// time, so that the engine reaches the same state. It does not repeat the effects, except in rounds after
// the last checkpoint: it reads their updates from the chunk store and aggregates them to bit-identical
// models. If the disk lost an update, its client counts as disconnected before the update was stored, and
// will be asked for it again. Cost: an engine step for each entry, and one hash over each payload since the
// checkpoint.
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
  std::uint64_t entries = 0;  // number of journal entries
  Time time{};                // of the last entry
  std::vector<RoundMetrics> history;
  std::optional<aggregation::Policy> policy;  // last policy given to the engine
  // Track phases that were closed (durably, if they end a round) but not yet committed in the engine.
  std::vector<RunEngine::CloseRound> closed;
  // `shared`: the last round of a serverless run. `unmade`: in a serverless or secure run, a closed track
  // phase without an aggregate.
  std::optional<ServerlessRound> shared;
  std::optional<RunEngine::CloseRound> unmade;
  bool finished = false;         // all rounds are done
  std::optional<Error> failure;  // the strategy failed; no entry after it counts
  std::vector<std::shared_ptr<protocol::StoredObject>> folded;    // updates aggregated in the current round
  std::vector<std::shared_ptr<protocol::StoredObject>> arriving;  // partially received updates
  std::vector<LostUpdate> lost;                                   // to be added to the journal
  std::vector<Event> events;                                      // about lost updates
};

class Recovery {
 public:
  struct Parts {
    RunStore& store;
    RunNumber run;
    RunEngine& engine;  // fresh
    RunState& state;    // fresh
    protocol::ChunkStore& updates;
  };
  explicit Recovery(const Parts& parts) : parts_(parts), rng_(parts.state.config().seed) {}

  // kCorrupt: a required file or entry is damaged; the message names it.
  Result<Recovered> run();

 private:
  Result<void> take(JournalStep step);
  Result<void> apply(const RunEngine::Input& input, Time time);
  // Returns the input that replaces a Stored whose update is lost; otherwise the input itself.
  Result<RunEngine::Input> checked(const RunEngine::Stored& stored, std::uint64_t sequence);
  Result<void> perform(const RunEngine::Effect& effect);
  Result<void> close(const RunEngine::CloseRound& close);
  Result<void> keep(const RunEngine::CloseRound& close);
  Result<void> fold(const RunEngine::Fold& fold);
  // Serverless runs: the updates are at the clients.
  bool is_serverless() const { return parts_.state.config().dissemination.serverless; }
  void share(const RunEngine::Effect& effect);
  void note_departure(const RunEngine::Input& input);
  // Secure runs: masked updates are useless to another process, but a journaled sum can be used.
  bool is_secure() const { return parts_.state.config().secure.on; }
  Result<void> take_up_sum(const SummedTurn& turn);
  Result<void> carry_out(const RunEngine::CloseRound& close);
  // Returns whether the checkpoint already contains the current round.
  bool is_kept() const { return closed_rounds_ < kept_rounds_; }

  Parts parts_;
  Rng rng_;
  Recovered result_;
  std::optional<Checkpoint> checkpoint_;
  std::uint64_t kept_rounds_ = 0;    // rounds in the checkpoint
  std::uint64_t closed_rounds_ = 0;  // rounds replayed so far
  RunState::Descriptions descriptions_;
  std::map<ClientId, protocol::Manifest> offered_;  // updates being fetched
  std::map<ClientId, run::StoredUpdate> uploads_;   // updates to be folded
  std::vector<protocol::Manifest> masked_;          // masked updates offered
};

}  // namespace fedge::server
