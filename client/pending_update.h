// A finished update that has no verdict yet, as one small file in the client's state directory, at most one
// for each run (STATE/pending/, the run in 16 hexadecimal digits): the task it was trained for and what was
// offered. Its payload lies in the chunk cache. What is written is there whole or not at all, with a
// checksum. Blocks on the disk; used by one thread at a time.
#pragma once

#include <filesystem>
#include <vector>

#include "core/result.h"
#include "protocol/messages.h"

namespace fedge::client {

struct PendingUpdate {
  protocol::TrainRequest request;
  protocol::UpdateOffer offer;  // of the request's task
};

// Whether what was trained for a task is what is asked for now. A coordinator that was killed may have
// forgotten what it had not promised yet: the same task is another then, unless it says that it knows.
bool same_task(const protocol::TrainRequest& known, const protocol::TrainRequest& asked);
// In place of the run's one before. Survives a power cut once it returns. Errors name the file.
Result<void> write_pending_update(const std::filesystem::path& state_directory, const PendingUpdate& pending);
// The files there are, in the order of the runs.
std::vector<std::filesystem::path> pending_updates(const std::filesystem::path& state_directory);
// One of them; kCorrupt, with the file's name, if it is damaged or another run's.
Result<PendingUpdate> read_pending_update(const std::filesystem::path& file);
// Where that of a run is, if there is one.
std::filesystem::path pending_file(const std::filesystem::path& state_directory, RunId run);

}  // namespace fedge::client
