// Updates in a chunk store, on their way into an aggregate, wherever that is made: decoded, and every value
// looked at. decode_update() makes plain float32 of a compressed one, store_values() one of values in memory,
// StoredValues reads such a one back.
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
  // Never kUnavailable, which of a rule means that a round has too few updates.
  Result<void> read(std::size_t first, std::span<float> out) const override {
    auto read = object_->read_bytes(first * sizeof(float), std::as_writable_bytes(out));
    if (!read && read.error().code == ErrorCode::kUnavailable)
      return Error{ErrorCode::kCorrupt, read.error().message};
    return read;
  }

 private:
  std::shared_ptr<protocol::StoredObject> object_;
};

// A second object with the values as plain float32. kInvalid or kCorrupt if the payload is not what its
// manifest says; other errors are the store's. Memory: one chunk and what the decoder needs.
Result<std::shared_ptr<protocol::StoredObject>> decode_update(protocol::StoredObject& update,
                                                              protocol::ChunkStore& store);
// An object with these values as plain float32, packed over the coverage of `shape`, which says layout and
// chunk size as well. Errors are the store's.
Result<std::shared_ptr<protocol::StoredObject>> store_values(std::span<const float> values,
                                                             const protocol::Manifest& shape,
                                                             protocol::ChunkStore& store);

// What may be in an update of a run.
struct ValueRules {
  const ParameterLayout& layout;
  const aggregation::FixedPoint& fixed_point;
};
// Reads an update once: the Euclidean norm of its values. The error names the first value that may not be
// there (kInvalid), or the file that could not be read.
Result<double> inspect_values(const ValueRules& rules, const Coverage& coverage,
                              const aggregation::UpdateValues& values);

// An update that is here, and the Euclidean norm of its values.
struct StoredUpdate {
  std::shared_ptr<protocol::StoredObject> arrived;  // as it was sent
  std::shared_ptr<protocol::StoredObject> plain;    // as float32, once it has been inspected; may be the same
  double norm = 0;
};
// Decodes an update that has arrived and looks at every value; but for masked ones, which stay as they are.
// kInvalid and kCorrupt: the sender's fault; other errors are the disk's.
Result<StoredUpdate> examine_update(const std::shared_ptr<protocol::StoredObject>& arrived,
                                    const ValueRules& rules, protocol::ChunkStore& store);

}  // namespace fedge::run
