#include "sim/transfers/transfer_size.h"

#include "protocol/chunks/chunk_messages.h"

namespace fedge::sim {

Bytes transfer_size_of(const protocol::Manifest& manifest, std::size_t chunk) {
  return protocol::chunk_frame_size(static_cast<std::uint32_t>(chunk), manifest.chunk_length(chunk));
}

Bytes transfer_size(const protocol::Manifest& manifest, std::size_t from) {
  Bytes bytes;
  for (; from < manifest.chunk_count(); ++from) bytes += transfer_size_of(manifest, from);
  return bytes;
}

std::size_t whole_chunks(const protocol::Manifest& manifest, std::size_t from, Bytes bytes) {
  std::size_t chunk = from;
  for (; chunk < manifest.chunk_count(); ++chunk) {
    const Bytes size = transfer_size_of(manifest, chunk);
    if (size > bytes) break;
    bytes -= size;
  }
  return chunk - from;
}

}  // namespace fedge::sim
