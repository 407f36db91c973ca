// Updates in a chunk store, before aggregation: decoded and inspected. decode_update() converts a compressed
// one to plain float32, store_values() stores values from memory, and StoredValues reads plain ones.
#pragma once

#include <memory>
#include <span>

#include "aggregation/aggregators/aggregator.h"
#include "aggregation/fixed_point.h"
#include "core/coverage.h"
#include "core/parameters.h"
#include "core/result.h"
#include "protocol/chunks/chunk_store.h"

namespace fedge::run {

class StoredValues final : public aggregation::UpdateValues {
 public:
  explicit StoredValues(std::shared_ptr<protocol::StoredObject> object) : object_(std::move(object)) {}
  // Never returns kUnavailable: from a rule, this code means that a round has too few updates.
  Result<void> read(std::size_t first, std::span<float> out) const override {
    auto read = object_->read_bytes(first * sizeof(float), std::as_writable_bytes(out));
    if (!read && read.error().code == ErrorCode::kUnavailable)
      return Error{ErrorCode::kCorrupt, read.error().message};
    return read;
  }

 private:
  std::shared_ptr<protocol::StoredObject> object_;
};

// Stores a second object with the values as plain float32. kInvalid or kCorrupt if the payload does not match
// its manifest; other errors are the store's. Memory: one chunk and the decoder's needs.
Result<std::shared_ptr<protocol::StoredObject>> decode_update(protocol::StoredObject& update,
                                                              protocol::ChunkStore& store);
// Stores these values as plain float32, packed over the coverage of `shape`, which also gives layout and
// chunk size. Errors are the store's.
Result<std::shared_ptr<protocol::StoredObject>> store_values(std::span<const float> values,
                                                             const protocol::Manifest& shape,
                                                             protocol::ChunkStore& store);

// The limits on the values of a run's updates.
struct ValueRules {
  const ParameterLayout& layout;
  const aggregation::FixedPoint& fixed_point;
};
// Reads an update once and returns the Euclidean norm of its values. The error names the first invalid value
// (kInvalid), or the file that could not be read.
Result<double> inspect_values(const ValueRules& rules, const Coverage& coverage,
                              const aggregation::UpdateValues& values);

// A received update and the Euclidean norm of its values.
struct StoredUpdate {
  std::shared_ptr<protocol::StoredObject> arrived;  // as sent
  std::shared_ptr<protocol::StoredObject> plain;    // as float32, after inspection; may be the same object
  double norm = 0;
};
// Decodes a received update and inspects every value; masked updates stay as they are. kInvalid and kCorrupt
// are the sender's fault; other errors are the disk's.
Result<StoredUpdate> examine_update(const std::shared_ptr<protocol::StoredObject>& arrived,
                                    const ValueRules& rules, protocol::ChunkStore& store);

}  // namespace fedge::run
