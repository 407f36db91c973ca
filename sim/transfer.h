// What moving an object over a link costs.
#pragma once

#include <vector>

#include "core/ids.h"
#include "protocol/chunks/manifest.h"

namespace fedge::sim {

// What a link carries to move all chunks of an object; every chunk's frame is the same size but for
// its payload and the digits of its index.
Bytes transfer_size(const protocol::Manifest& manifest);
// To move these of its chunks.
Bytes transfer_size(const protocol::Manifest& manifest, const std::vector<bool>& wanted);

}  // namespace fedge::sim
