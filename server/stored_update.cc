#include "server/stored_update.h"

#include "protocol/codecs/payload_codec.h"

namespace fedge::server {

Result<std::shared_ptr<protocol::StoredObject>> decode_update(protocol::StoredObject& update,
                                                              protocol::ChunkStore& store) {
  FEDGE_TRY(decoder, protocol::PayloadDecoder::open(update.manifest(), update));
  protocol::Manifest plain;
  plain.layout = update.manifest().layout;
  plain.coverage = update.manifest().coverage;
  plain.payload_size = plain.coverage.count() * sizeof(float);
  plain.chunk_size = update.manifest().chunk_size;
  FEDGE_TRY(object, store.build(plain, [&](std::size_t, std::span<std::byte> out) {
    return decoder.read({reinterpret_cast<float*>(out.data()), out.size() / sizeof(float)});
  }));
  if (const auto finished = decoder.finish(); !finished) {
    store.remove(object->manifest().id());
    return finished.error();
  }
  return object;
}

}  // namespace fedge::server
