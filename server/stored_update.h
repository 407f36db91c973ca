// Updates in the coordinator's chunk store. UpdateSink is where one goes that is being fetched: it
// remembers what went wrong on this machine, so that a peer is not blamed for it. decode_update() makes
// plain float32 of a compressed one, store_values() one of values in memory, StoredValues reads such a one
// back.
#pragma once

#include <memory>
#include <optional>
#include <span>

#include "aggregation/aggregators/aggregator.h"
#include "protocol/chunks/chunk_messages.h"
#include "protocol/chunks/chunk_store.h"

namespace fedge::server {

class UpdateSink final : public protocol::ChunkSink {
 public:
  // `received` gets what the chunks take on the wire.
  UpdateSink(std::shared_ptr<protocol::StoredObject> object, std::shared_ptr<Bytes> received)
      : object_(std::move(object)), received_(std::move(received)) {}
  bool has(std::size_t chunk) const override { return object_->has(chunk); }
  Result<void> write(std::size_t chunk, std::span<const std::byte> bytes) override {
    *received_ += protocol::chunk_frame_size(static_cast<std::uint32_t>(chunk), bytes.size());
    const auto written = object_->write(chunk, bytes);
    if (!written) fault_ = written.error();
    return written;
  }
  // What went wrong on this machine, not at the peer.
  const std::optional<Error>& fault() const { return fault_; }

 private:
  std::shared_ptr<protocol::StoredObject> object_;
  std::shared_ptr<Bytes> received_;
  std::optional<Error> fault_;
};

// A model on its way out.
class CountedSource final : public protocol::ChunkSource {
 public:
  CountedSource(std::shared_ptr<protocol::StoredObject> object, std::shared_ptr<Bytes> sent)
      : object_(std::move(object)), sent_(std::move(sent)) {}
  Result<void> read_part(std::size_t chunk, std::size_t from, std::span<std::byte> out) override {
    return object_->read_part(chunk, from, out);
  }
  void sent(std::size_t, std::size_t frame_size) override { *sent_ += Bytes(frame_size); }

 private:
  std::shared_ptr<protocol::StoredObject> object_;
  std::shared_ptr<Bytes> sent_;
};

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

}  // namespace fedge::server
