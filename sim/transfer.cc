#include "sim/transfer.h"

#include "protocol/chunks/chunk_messages.h"

namespace fedge::sim {

Bytes transfer_size(const protocol::Manifest& manifest) {
  Bytes bytes;
  for (std::uint32_t chunk = 0; chunk < manifest.chunk_count(); ++chunk)
    bytes += protocol::chunk_frame_size(chunk, manifest.chunk_length(chunk));
  return bytes;
}

}  // namespace fedge::sim
