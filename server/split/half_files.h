// HalfFiles: what the coordinator has trained of clients' updates, until the round's model is durable. A half
// is on the disk before its client may offer the update: so it survives a restart. Any thread.
#pragma once

#include <filesystem>
#include <span>
#include <vector>

#include "core/ids.h"
#include "core/result.h"
#include "protocol/chunks/chunk_store.h"
#include "run/stored_update.h"
#include "server/run_state.h"

namespace fedge::server {

class HalfFiles {
 public:
  // The directory is made when it is needed.
  explicit HalfFiles(std::filesystem::path directory) : directory_(std::move(directory)) {}

  // Durable when it returns. In place of an earlier half of this task.
  Result<void> write(ClientId client, RoundNumber round, std::span<const float> values) const;
  // kNotFound: there is none; kCorrupt: a damaged one.
  Result<std::vector<float>> read(ClientId client, RoundNumber round) const;
  // Removes the halves of this round and of all before. Errors are of no consequence.
  void remove_until(RoundNumber round) const;

  // Joins a client's checked update with the coordinator's half: the result covers both. kInvalid: there is
  // no such half. Other errors are the disk's.
  Result<run::StoredUpdate> join(ClientId client, RoundNumber round, run::StoredUpdate update,
                                 const RunState& state, protocol::ChunkStore& store) const;

 private:
  std::filesystem::path path(ClientId client, RoundNumber round) const;

  std::filesystem::path directory_;
};

}  // namespace fedge::server
