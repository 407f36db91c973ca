// Replay: a production run is carried out again from its journal. The engine gets every input at its time and
// decides what it decided; each update that it accepted is trained again from the client's part of the run's
// data and the model that the client was given, and must be the one that was offered, byte for byte; the
// models after every round must be the recorded ones. The store is only read, and its coordinator may be
// running. What a client got in other ways than by the run's data and the built-in trainer (a program of its
// own, other samples, a memory that it lost) shows as a difference.
// Whether the clients of a serverless round came to one model is not in the journal: where the recorded model
// is the former one, a replay takes it that they did not.
// One thread calls; training is spread over `parallel`, which cannot be seen in the result. Cost: the run's
// training. Memory: the data, the models, eight updates for each thread, and those that a rule keeps.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>

#include "core/parallel.h"
#include "core/result.h"
#include "server/report/metrics.h"
#include "server/store/run_store.h"

namespace fedge::sim {

struct ReplayedRound {
  server::RoundMetrics replayed;
  std::optional<server::RoundMetrics> recorded;  // none: closed, but the coordinator has not recorded it yet
};
// Whether both ended with the same models, each track's.
bool same_models(const server::RoundMetrics& a, const server::RoundMetrics& b);

struct ReplayOptions {
  std::uint64_t until = std::numeric_limits<std::uint64_t>::max();  // the last round to be replayed
  std::function<void(const ReplayedRound&)> on_round = {};          // of each, in order; may be empty
};

struct ReplaySummary {
  std::uint64_t rounds = 0;      // closed
  std::uint64_t unrecorded = 0;  // of these, the last ones
  std::uint64_t updates = 0;     // trained again, all but a differing one equal
  bool finished = false;         // the journal ends with the end of the run
  // The first: a sentence that names client and task, or round. Nothing is replayed after it.
  std::optional<std::string> difference;
};

// kCorrupt: the journal is damaged or ends before what is recorded; the message names the entry or the round.
// kUnsupported: the run sums its updates in secret. Other errors: of the run file, the data that it names, or
// memory.
Result<ReplaySummary> replay_run(server::RunStore& store, const server::RunRecord& run,
                                 const ReplayOptions& options, Parallel& parallel);

}  // namespace fedge::sim
