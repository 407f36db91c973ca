// Chunk sinks and sources that count bytes on a link, and of the transfer that operators see. UpdateSink
// receives an update and remembers local errors, so that the peer is not blamed for them.
#pragma once

#include <memory>
#include <optional>
#include <span>

#include "protocol/chunks/chunk_messages.h"
#include "protocol/chunks/chunk_store.h"
#include "server/live/transfers.h"

namespace fedge::server {

class UpdateSink final : public protocol::ChunkSink {
 public:
  // Adds the chunks' size on the wire to `received`, and their bytes to `transfer` if there still is one.
  UpdateSink(std::shared_ptr<protocol::StoredObject> object, std::shared_ptr<Bytes> received,
             std::weak_ptr<Transfer> transfer = {})
      : object_(std::move(object)), received_(std::move(received)), transfer_(std::move(transfer)) {}
  bool has(std::size_t chunk) const override { return object_->has(chunk); }
  Result<void> write(std::size_t chunk, std::span<const std::byte> bytes) override {
    *received_ += protocol::chunk_frame_size(static_cast<std::uint32_t>(chunk), bytes.size());
    const auto written = object_->write(chunk, bytes);
    if (!written) fault_ = written.error();
    if (const auto transfer = transfer_.lock(); transfer && written) transfer->add(bytes.size());
    return written;
  }
  // Returns the local error, if any, that ended the transfer.
  const std::optional<Error>& fault() const { return fault_; }

 private:
  std::shared_ptr<protocol::StoredObject> object_;
  std::shared_ptr<Bytes> received_;
  std::weak_ptr<Transfer> transfer_;
  std::optional<Error> fault_;
};

// Serves a model and counts the bytes sent.
class CountedSource final : public protocol::ChunkSource {
 public:
  // `transfer`: of the only client that reads from here, if there is one.
  CountedSource(std::shared_ptr<protocol::StoredObject> object, std::shared_ptr<Bytes> sent,
                std::weak_ptr<Transfer> transfer = {})
      : object_(std::move(object)), sent_(std::move(sent)), transfer_(std::move(transfer)) {}
  Result<void> read_part(std::size_t chunk, std::size_t from, std::span<std::byte> out) override {
    const auto read = object_->read_part(chunk, from, out);
    if (const auto transfer = transfer_.lock()) read ? transfer->requested() : transfer->refused();
    return read;
  }
  void sent(std::size_t chunk, std::size_t frame_size) override {
    *sent_ += Bytes(frame_size);
    const auto transfer = transfer_.lock();
    if (transfer) transfer->sent((std::uint64_t{chunk} + 1) * object_->manifest().chunk_size);
  }

 private:
  std::shared_ptr<protocol::StoredObject> object_;
  std::shared_ptr<Bytes> sent_;
  std::weak_ptr<Transfer> transfer_;
};

}  // namespace fedge::server
