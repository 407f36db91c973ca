// The nodes that a directory knew when it ended, so that the next process can enter even if no bootstrap
// node answers. One line "ID HOST:PORT" for each. Unreadable lines are skipped.
#pragma once

#include <filesystem>
#include <vector>

#include "core/result.h"
#include "dht/network_directory.h"

namespace fedge::dht {

inline constexpr std::size_t kMaxKnownNodes = 64;

std::vector<KnownNode> read_node_file(const std::filesystem::path& path);
Result<void> write_node_file(const std::filesystem::path& path, const std::vector<KnownNode>& nodes);

}  // namespace fedge::dht
