// ClientMemory: what a client keeps of a run from one task to the next: SCAFFOLD's control variate c_k and
// the error of compressed updates. It never leaves the client. A memory is named by the task it was left
// by; the coordinator says in each task which of the client's updates it accepted last, and the client
// goes on from the memory of just that one. At most two are kept: whether the last update was accepted
// may not be known yet. Where a run has several models (tracks), there is a store for each: what is learnt
// on one must not reach another.
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
  RoundNumber round;                  // of the task that left it; 0: nothing has happened yet
  std::vector<std::int64_t> control;  // c_k in aggregation::kControlUnit, model size; empty = zeros
  std::vector<float> residual;        // what compressed updates left out, model size; empty = zeros
};

class MemoryStore {
 public:
  virtual ~MemoryStore() = default;
  // The memory that this task left (an empty one for task 0), or nothing if it is not there; the others
  // are forgotten.
  virtual Result<std::optional<ClientMemory>> load(RoundNumber round) = 0;
  virtual Result<void> save(ClientMemory memory) = 0;
};

// Between tasks in memory alone: for a simulator's clients.
class VolatileMemory final : public MemoryStore {
 public:
  Result<std::optional<ClientMemory>> load(RoundNumber round) override;
  Result<void> save(ClientMemory memory) override;

 private:
  std::vector<ClientMemory> memories_;
};

// Where a run's memory is: STATE/runs/<its number>.
std::filesystem::path memory_of(const std::filesystem::path& state_directory, RunId run);
// Forgets what is kept of a run; of all but these.
void forget_run(const std::filesystem::path& state_directory, RunId run);
void forget_other_runs(const std::filesystem::path& state_directory, std::span<const RunId> going);

// Forgets the tracks under this directory (below) that are not among these, ascending.
void keep_only(const std::filesystem::path& directory, std::span<const TrackId> live);

// One file for each task of a track under this directory, made on first use; written whole or not at all,
// with a checksum. A damaged file is kCorrupt, named and removed.
class FileMemory final : public MemoryStore {
 public:
  explicit FileMemory(const std::filesystem::path& directory, TrackId track = {});
  Result<std::optional<ClientMemory>> load(RoundNumber round) override;
  Result<void> save(ClientMemory memory) override;

 private:
  std::filesystem::path directory_;
};

}  // namespace fedge::client
