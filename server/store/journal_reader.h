// Reading a run's journal as its engine must be given it: what a coordinator goes on from after a kill, and
// what a replay re-executes. Any thread. Cost: the journal is read twice, since a note about a lost update
// stands after the entry that it is about.
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

// One entry.
struct JournalStep {
  std::uint64_t sequence = 0;
  Time time{};
  // None for a note. A Stored whose update was lost later is a ClientLeft.
  std::optional<RunEngine::Input> input;
  // Of the note about what a turn that is closed has come to.
  std::optional<SummedTurn> summed = {};
};

// Calls `visit` with each entry, ascending; its first error ends the reading. kCorrupt names the entry that
// is damaged or of no known kind, before the first one is visited. What is added meanwhile is not visited.
Result<void> read_inputs(RunStore& store, RunNumber run,
                         const std::function<Result<void>(JournalStep)>& visit);

}  // namespace fedge::server
