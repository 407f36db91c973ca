#include "sim/transfer.h"

#include "protocol/chunks/chunk_messages.h"
#include "protocol/codec.h"

namespace fedge::sim {

Bytes transfer_size(const protocol::Manifest& manifest) {
  std::uint64_t bytes = manifest.payload_size;
  for (std::uint32_t chunk = 0; chunk < manifest.chunk_count(); ++chunk)
    bytes +=
        protocol::encode_frame(protocol::Chunk{.object = {}, .index = chunk}, manifest.chunk_length(chunk))
            .size();
  return Bytes(bytes);
}

}  // namespace fedge::sim
