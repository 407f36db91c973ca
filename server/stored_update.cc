#include "server/stored_update.h"

#include <cstring>

#include "core/check.h"
#include "protocol/codecs/payload_codec.h"

namespace fedge::server {
namespace {

// The shape of such an update as plain float32.
protocol::Manifest plain(const protocol::Manifest& update) {
  protocol::Manifest shape;
  shape.layout = update.layout;
  shape.coverage = update.coverage;
  shape.payload_size = update.coverage.count() * sizeof(float);
  shape.chunk_size = update.chunk_size;
  return shape;
}

}  // namespace

Result<std::shared_ptr<protocol::StoredObject>> decode_update(protocol::StoredObject& update,
                                                              protocol::ChunkStore& store) {
  FEDGE_TRY(decoder, protocol::PayloadDecoder::open(update.manifest(), update));
  FEDGE_TRY(object, store.build(plain(update.manifest()), [&](std::size_t, std::span<std::byte> out) {
    return decoder.read({reinterpret_cast<float*>(out.data()), out.size() / sizeof(float)});
  }));
  if (const auto finished = decoder.finish(); !finished) {
    store.remove(object->manifest().id());
    return finished.error();
  }
  return object;
}

Result<std::shared_ptr<protocol::StoredObject>> store_values(std::span<const float> values,
                                                             const protocol::Manifest& shape,
                                                             protocol::ChunkStore& store) {
  FEDGE_CHECK(values.size() == shape.coverage.count(), "a value for each covered parameter");
  const auto bytes = std::as_bytes(values);
  return store.build(plain(shape), [&](std::size_t chunk, std::span<std::byte> out) -> Result<void> {
    std::memcpy(out.data(), bytes.data() + chunk * shape.chunk_size, out.size());
    return {};
  });
}

}  // namespace fedge::server
