// Cost of moving an object over a link.
#pragma once

#include <cstddef>

#include "core/ids.h"
#include "protocol/chunks/manifest.h"

namespace fedge::sim {

// Bytes on a link for moving one chunk.
Bytes transfer_size_of(const protocol::Manifest& manifest, std::size_t chunk);
// Bytes on a link for moving the chunks of an object from this one on. Frames differ in size only by payload
// and by the digits of the chunk index.
Bytes transfer_size(const protocol::Manifest& manifest, std::size_t from);
// Returns how many whole chunks, from this one on, these bytes contain.
std::size_t whole_chunks(const protocol::Manifest& manifest, std::size_t from, Bytes bytes);

}  // namespace fedge::sim
