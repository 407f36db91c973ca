// A finished update that has no verdict yet, as one small file in the client's state directory: the task it
// was trained for and what was offered. Its payload lies in the chunk cache. What is written is there whole
// or not at all, with a checksum. Blocks on the disk; used by one thread at a time.
#pragma once

#include <filesystem>
#include <optional>

#include "core/result.h"
#include "protocol/messages.h"

namespace fedge::client {

struct PendingUpdate {
  protocol::TrainRequest request;
  protocol::UpdateOffer offer;  // of the request's task
};

// Survives a power cut once it returns. Errors name the file.
Result<void> write_pending_update(const std::filesystem::path& state_directory, const PendingUpdate& pending);
// Nothing if there is none; kCorrupt, with the file's name, if it is damaged.
Result<std::optional<PendingUpdate>> read_pending_update(const std::filesystem::path& state_directory);
// Also one that is not there.
void remove_pending_update(const std::filesystem::path& state_directory);

}  // namespace fedge::client
