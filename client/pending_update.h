// A finished update without a verdict, as a small file in the client's state directory: the task it was
// trained for and the offer. At most one file for each run: STATE/pending/<run in 16 hexadecimal digits>.
// The payload is in the chunk cache. Writes are atomic and have a checksum. Blocks on the disk; use from
// one thread at a time.
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

// Whether the known task is the requested one. A coordinator that was killed may have lost a task that was
// not durable; the same number then names a new task, unless the request is marked as a repetition
// (`again`).
bool same_task(const protocol::TrainRequest& known, const protocol::TrainRequest& asked);
// Replaces the run's previous one. Survives a power cut once it returns. Errors name the file.
Result<void> write_pending_update(const std::filesystem::path& state_directory, const PendingUpdate& pending);
// The existing files, in the order of the runs.
std::vector<std::filesystem::path> pending_updates(const std::filesystem::path& state_directory);
// Reads one file; kCorrupt, with the file's name, if it is damaged or belongs to another run.
Result<PendingUpdate> read_pending_update(const std::filesystem::path& file);
// The path of a run's file, whether or not it exists.
std::filesystem::path pending_file(const std::filesystem::path& state_directory, RunId run);

}  // namespace fedge::client
