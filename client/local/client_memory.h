// ClientMemory: what a client keeps of a run between tasks: SCAFFOLD's control variate c_k or FedDyn's sum of
// its updates, the error of compressed updates, and parameters that are its own. It never leaves the client.
// A memory is named after the task that left it. Each task says which of the client's updates the coordinator
// accepted last, and the client continues from that memory. A store keeps at most two memories, because the
// verdict on the last update may still be unknown. Each track of a run has its own store: what is learnt on
// one track must not reach another.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/ids.h"
#include "core/result.h"

namespace fedge::client {

struct ClientMemory {
  RoundNumber round;  // of the task that left it; 0: initial memory
  // SCAFFOLD: c_k; FedDyn: the sum of its updates; in aggregation::kControlUnit, model size; empty = zeros.
  // training.overlap: the first parameter and the end of each range of the part that was trained.
  std::vector<std::int64_t> control;
  std::vector<float> residual;  // what compressed updates left out, model size; empty = zeros
  // Parameters of its own: packed over Task::personal(); or a whole model, Ditto's or the one that MOON's
  // last training ended with; empty = those of the run. training.overlap: the values of that part with which
  // the next task begins.
  std::vector<float> personal = {};
};

class MemoryStore {
 public:
  virtual ~MemoryStore() = default;
  // Returns the memory that this task left (an empty one for round 0), or nothing if it is missing; deletes
  // the others.
  virtual Result<std::optional<ClientMemory>> load(RoundNumber round) = 0;
  virtual Result<void> save(ClientMemory memory) = 0;
};

// Keeps memories in RAM only: for the simulator's clients.
class VolatileMemory final : public MemoryStore {
 public:
  Result<std::optional<ClientMemory>> load(RoundNumber round) override;
  Result<void> save(ClientMemory memory) override;

 private:
  std::vector<ClientMemory> memories_;
};

// The directory of a run's memory: STATE/runs/<run number>.
std::filesystem::path memory_of(const std::filesystem::path& state_directory, RunId run);
// forget_run() deletes the files of this run, forget_other_runs() those of all runs but these.
void forget_run(const std::filesystem::path& state_directory, RunId run);
void forget_other_runs(const std::filesystem::path& state_directory, std::span<const RunId> going);

// Records in a run's memory that the client counts its data in these bins. The same attempt may be repeated
// with the same bins, and gives the same sums. kRefused for any other attempt that is not later than the last
// one: many counts in other bins would show single values. It is durable when the call returns.
Result<void> admit_count(const std::filesystem::path& memory, RoundNumber attempt,
                         std::span<const float> edges);

// Deletes the stores in this directory of all tracks but these, which are ascending.
void keep_only(const std::filesystem::path& directory, std::span<const TrackId> live);

// Keeps one file for each task of a track in this directory, created on first use. Files are replaced
// atomically and have a checksum. A damaged file is removed, and the error (kCorrupt) names it.
class FileMemory final : public MemoryStore {
 public:
  explicit FileMemory(const std::filesystem::path& directory, TrackId track = {});
  Result<std::optional<ClientMemory>> load(RoundNumber round) override;
  Result<void> save(ClientMemory memory) override;
  // As load(), but deletes no others.
  Result<std::optional<ClientMemory>> read(RoundNumber round) const;

 private:
  std::filesystem::path directory_;
};

}  // namespace fedge::client
