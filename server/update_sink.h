// UpdateSink: where the coordinator puts an update that it fetches: an object of its chunk store. It
// remembers what went wrong on this machine, so that a peer is not blamed for it. StoredValues reads
// such an update back, once it is complete.
#pragma once

#include <memory>
#include <optional>

#include "aggregation/aggregators/aggregator.h"
#include "protocol/chunks/chunk_store.h"

namespace fedge::server {

class UpdateSink final : public protocol::ChunkSink {
 public:
  explicit UpdateSink(std::shared_ptr<protocol::StoredObject> object) : object_(std::move(object)) {}
  bool has(std::size_t chunk) const override { return object_->has(chunk); }
  Result<void> write(std::size_t chunk, std::span<const std::byte> bytes) override {
    const auto written = object_->write(chunk, bytes);
    if (!written) fault_ = written.error();
    return written;
  }
  // What went wrong on this machine, not at the peer.
  const std::optional<Error>& fault() const { return fault_; }

 private:
  std::shared_ptr<protocol::StoredObject> object_;
  std::optional<Error> fault_;
};

class StoredValues final : public aggregation::UpdateValues {
 public:
  explicit StoredValues(std::shared_ptr<protocol::StoredObject> object) : object_(std::move(object)) {}
  Result<void> read(std::size_t first, std::span<float> out) const override {
    return object_->read_bytes(first * sizeof(float), std::as_writable_bytes(out));
  }

 private:
  std::shared_ptr<protocol::StoredObject> object_;
};

}  // namespace fedge::server
