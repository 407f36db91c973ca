// Replay: repeats a production run from its journal. The engine receives every input at its time and repeats
// its decisions. Each accepted update is trained again from the client's part of the run's data and the model
// that the client received, and must equal the offered update byte for byte. The models after every round
// must equal the recorded ones. The store is only read; its coordinator may be running. Influences beyond the
// run's data and the built-in trainer (another program, other samples, lost client memory) appear as
// differences. The journal does not say whether the clients of a serverless round agreed on a model: if the
// recorded model equals the previous one, replay assumes that they did not. Call it from one thread; training
// uses `parallel`, without effect on the result. Cost: the run's training. Memory: the data, the models,
// eight updates for each thread, and those that a rule keeps.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>

#include "core/parallel.h"
#include "core/result.h"
#include "learn/data/data_directories.h"
#include "server/report/metrics.h"
#include "server/store/run_store.h"

namespace fedge::sim {

struct ReplayedRound {
  server::RoundMetrics replayed;
  std::optional<server::RoundMetrics> recorded;  // none: closed, but not recorded by the coordinator yet
};
// True if both rounds ended with the same models on all tracks.
bool same_models(const server::RoundMetrics& a, const server::RoundMetrics& b);

struct ReplayOptions {
  std::uint64_t until = std::numeric_limits<std::uint64_t>::max();  // last round to replay
  std::function<void(const ReplayedRound&)> on_round = {};  // called for each round in order; may be empty
  learn::DataDirectories data = {};                         // paths of the run's data on this machine
};

struct ReplaySummary {
  std::uint64_t rounds = 0;      // closed
  std::uint64_t unrecorded = 0;  // the last of these, not recorded yet
  std::uint64_t updates = 0;     // trained again; all equal except a reported difference
  bool finished = false;         // the journal ends with the end of the run
  // The first difference: a sentence that names client and task, or round. Replay stops there.
  std::optional<std::string> difference;
};

// kCorrupt: the journal is damaged or ends before the recorded rounds; the message names the entry or the
// round. kUnsupported: the run uses secure aggregation. Other errors: of the run file, the data that it
// names, or memory.
Result<ReplaySummary> replay_run(server::RunStore& store, const server::RunRecord& run,
                                 const ReplayOptions& options, Parallel& parallel);

}  // namespace fedge::sim
