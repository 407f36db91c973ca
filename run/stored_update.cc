#include "run/stored_update.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "aggregation/value_check.h"
#include "core/aligned_buffer.h"
#include "core/check.h"
#include "protocol/codecs/payload_codec.h"

namespace fedge::run {
namespace {

// Values of an update in memory at a time during inspection.
constexpr std::size_t kStoredPiece = std::size_t{1} << 16;

// The manifest of such an update as plain float32.
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

Result<double> inspect_values(const ValueRules& rules, const Coverage& coverage,
                              const aggregation::UpdateValues& values) {
  AlignedBuffer<float> buffer(values.in_memory().empty() ? kStoredPiece : 0);
  const std::size_t count = coverage.count();
  double squares = 0;
  for (std::size_t first = 0; first < count; first += kStoredPiece) {
    const std::size_t size = std::min(kStoredPiece, count - first);
    std::span<const float> piece;
    if (buffer.size() == 0) {
      piece = values.in_memory().subspan(first, size);
    } else {
      FEDGE_TRY_VOID(values.read(first, buffer.span().first(size)));
      piece = buffer.span().first(size);
    }
    FEDGE_TRY_VOID(aggregation::check_values(rules.layout, rules.fixed_point, {&coverage, first, piece}));
    squares += aggregation::sum_of_squares(piece);
  }
  return std::sqrt(squares);
}

Result<StoredUpdate> examine_update(const std::shared_ptr<protocol::StoredObject>& arrived,
                                    const ValueRules& rules, protocol::ChunkStore& store) {
  StoredUpdate update{arrived, arrived, 0};
  if (protocol::is_masked(arrived->manifest().codec)) return update;  // masked values cannot be inspected
  if (!arrived->manifest().is_plain_float32()) {
    FEDGE_TRY(decoded, decode_update(*arrived, store));
    update.plain = std::move(decoded);
  }
  const auto norm = inspect_values(rules, arrived->manifest().coverage, StoredValues(update.plain));
  if (!norm) {
    if (update.plain != arrived) store.remove(update.plain->manifest().id());
    return norm.error();
  }
  update.norm = *norm;
  return update;
}

}  // namespace fedge::run
