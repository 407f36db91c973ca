// Chunk sinks and sources that count bytes on a link. UpdateSink receives an update and remembers local
// errors, so that the peer is not blamed for them.
#pragma once

#include <memory>
#include <optional>
#include <span>

#include "protocol/chunks/chunk_messages.h"
#include "protocol/chunks/chunk_store.h"

namespace fedge::server {

class UpdateSink final : public protocol::ChunkSink {
 public:
  // Adds the chunks' size on the wire to `received`.
  UpdateSink(std::shared_ptr<protocol::StoredObject> object, std::shared_ptr<Bytes> received)
      : object_(std::move(object)), received_(std::move(received)) {}
  bool has(std::size_t chunk) const override { return object_->has(chunk); }
  Result<void> write(std::size_t chunk, std::span<const std::byte> bytes) override {
    *received_ += protocol::chunk_frame_size(static_cast<std::uint32_t>(chunk), bytes.size());
    const auto written = object_->write(chunk, bytes);
    if (!written) fault_ = written.error();
    return written;
  }
  // Returns the local error, if any, that ended the transfer.
  const std::optional<Error>& fault() const { return fault_; }

 private:
  std::shared_ptr<protocol::StoredObject> object_;
  std::shared_ptr<Bytes> received_;
  std::optional<Error> fault_;
};

// Serves a model and counts the bytes sent.
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

}  // namespace fedge::server
