// The nodes that a directory knew when it ended, so that the next one finds its way back when no bootstrap
// node answers: a line "ID HOST:PORT" each. A hint: what cannot be read is left out.
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
