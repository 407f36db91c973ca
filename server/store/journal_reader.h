// Reads a run's journal for its engine, after a crash and for a replay. Any thread. Cost: the journal is
// read twice, because a note about a lost update comes after the entry it concerns.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "core/result.h"
#include "core/time.h"
#include "server/engine/run_engine.h"
#include "server/store/run_store.h"
#include "server/summed_turn.h"

namespace fedge::server {

// One journal entry.
struct JournalStep {
  std::uint64_t sequence = 0;
  Time time{};
  // Empty for a note. A Stored whose update was lost later becomes a ClientLeft.
  std::optional<RunEngine::Input> input;
  // The secure sum of a closed track phase, if the entry is a note about one.
  std::optional<SummedTurn> summed = {};
};

// Calls `visit` with each entry, ascending; its first error ends the reading. kCorrupt names a damaged
// entry or one of unknown type, before any visit. Entries added meanwhile are not visited.
Result<void> read_inputs(RunStore& store, RunNumber run,
                         const std::function<Result<void>(JournalStep)>& visit);

}  // namespace fedge::server
