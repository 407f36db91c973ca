// Checkpoints: what a simulation needs to continue in another process, in a directory of its results: the log
// of the run (run_log.h), and the models and the clients' states at the end of a round. After a crash the
// last checkpoint is complete. If several ranks run the simulation, rank 0 has the checkpoints, and each rank
// has a file of its clients' states. One thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/crypto/sha256.h"
#include "core/ids.h"
#include "core/parameters.h"
#include "core/platform/scratch_file.h"
#include "core/result.h"
#include "protocol/chunks/chunk_store.h"
#include "server/run_state.h"
#include "sim/checkpoint/run_log.h"
#include "sim/ranks/shared_work.h"
#include "sim/training/training_pool.h"

namespace fedge::sim {

class Checkpoints {
 public:
  struct Options {
    std::filesystem::path directory;
    std::string program;  // its name and version: another one cannot continue the run
    RunId run;
    std::filesystem::path results = {};  // a file that is made durable with each checkpoint; empty: none
    // Least wall time between two checkpoints. It is also at least 50 times as long as the last
    // one took, or as writing the states of the clients may take, unless this is 0.
    std::chrono::duration<double> every{10};
    std::size_t rank = 0;
    std::size_t ranks = 1;
  };
  // Opens the directory, or creates it. `going_on`: the run continues from its last checkpoint, if there is
  // one; otherwise it begins, and an earlier checkpoint is removed. kRefused if the checkpoint is another
  // program's, kCorrupt if it is damaged.
  static Result<Checkpoints> open(Options options, bool going_on);
  // On another rank: receives what rank 0 has, which calls show(). Such checkpoints are never saved.
  static Result<Checkpoints> receive(Options options, SharedWork& shared);
  Result<void> show(SharedWork& shared);
  Checkpoints(Checkpoints&&) noexcept;
  ~Checkpoints();

  // The file for what clients keep between tasks.
  std::filesystem::path client_file() const {
    return options_.directory / (options_.rank == 0 ? "clients" : "clients." + std::to_string(options_.rank));
  }

  // --- to continue ---
  // Number of rounds that had ended at the checkpoint from which the run continues; 0: it begins.
  std::uint64_t rounds() const;
  std::chrono::duration<double> wall() const;
  // Moves the log out.
  std::string take_log();
  // Brings back what was saved.
  Result<void> restore(server::RunState& state, const server::RunState::Descriptions& descriptions,
                       protocol::ChunkStore& store, ClientStates& clients);
  // The former models that tasks under way train. Call it after restore(), once.
  Result<LiveStates> load_live(const std::shared_ptr<const ParameterLayout>& layout);

  // --- to save ---
  // Whether it is time for the next checkpoint, with these states of clients.
  bool due(const ClientStates& clients) const;
  // Writes the records to the log before they take too much memory.
  Result<void> add(RunLog& log);
  struct Saved {
    std::uint64_t rounds = 0;  // that have ended
    std::chrono::duration<double> wall{};
    const LiveStates& live;
  };
  // Saves the states of this rank's clients; returns where they are, for save() on rank 0.
  static Result<std::string> save_states(ClientStates& clients);
  // On return the checkpoint survives a power cut. `clients` is what save_states() has returned on each rank.
  Result<void> save(const Saved& saved, const std::vector<std::string>& clients, server::RunState& state,
                    RunLog& log);
  // The run has ended: removes the directory.
  Result<void> remove();

 private:
  struct Content;  // of the last checkpoint
  Checkpoints(Options options, std::unique_ptr<protocol::ChunkStore> store);
  Result<void> load();
  // The objects of the last checkpoint, with former models.
  Result<std::vector<protocol::Manifest>> objects() const;
  Result<void> write_log(RunLog& log);
  // Finds an object of the last checkpoint.
  Result<std::shared_ptr<protocol::StoredObject>> find(const protocol::Manifest& manifest);
  // Stores it durably for the next checkpoint; returns its description (server::encode_object()).
  Result<std::string> keep(protocol::StoredObject& object);
  Result<std::string> keep(const ParameterVector& values);

  using Clock = std::chrono::steady_clock;
  Options options_;
  std::unique_ptr<protocol::ChunkStore> store_;  // of the models
  std::optional<ScratchFile> log_;               // of rank 0
  std::uint64_t log_size_ = 0;
  std::unique_ptr<Sha256> log_hash_;
  std::string former_log_;
  std::unique_ptr<Content> content_;
  std::vector<std::shared_ptr<protocol::StoredObject>> received_;  // until load_live()
  std::set<protocol::ObjectId> objects_;                           // of the last checkpoint
  std::set<protocol::ObjectId> kept_;                              // of the next one
  Clock::time_point last_ = Clock::now();                          // end of the last checkpoint
  Clock::duration cost_{};                                         // of the last checkpoint
};

}  // namespace fedge::sim
