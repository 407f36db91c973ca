// Cost of moving an object over a link.
#pragma once

#include <vector>

#include "core/ids.h"
#include "protocol/chunks/manifest.h"

namespace fedge::sim {

// Bytes on a link for moving all chunks of an object. Frames differ in size only by payload and by the digits
// of the chunk index.
Bytes transfer_size(const protocol::Manifest& manifest);
// Bytes for moving only the wanted chunks.
Bytes transfer_size(const protocol::Manifest& manifest, const std::vector<bool>& wanted);

}  // namespace fedge::sim
