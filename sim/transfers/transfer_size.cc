#include "sim/transfers/transfer_size.h"

#include "protocol/chunks/chunk_messages.h"

namespace fedge::sim {

Bytes transfer_size(const protocol::Manifest& manifest) {
  return transfer_size(manifest, std::vector<bool>(manifest.chunk_count(), true));
}

Bytes transfer_size(const protocol::Manifest& manifest, const std::vector<bool>& wanted) {
  Bytes bytes;
  for (std::uint32_t chunk = 0; chunk < manifest.chunk_count(); ++chunk)
    if (wanted[chunk]) bytes += protocol::chunk_frame_size(chunk, manifest.chunk_length(chunk));
  return bytes;
}

}  // namespace fedge::sim
