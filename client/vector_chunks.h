// Chunks straight into a parameter vector and out of an update, so that a client holds a model or an
// update once, not once as floats and once as chunks.
#pragma once

#include <cstring>
#include <memory>
#include <vector>

#include "client/local_work.h"
#include "core/parameters.h"
#include "protocol/chunks/chunk_store.h"

namespace fedge::client {

// Receives a full-coverage float32 payload.
class VectorSink final : public protocol::ChunkSink {
 public:
  VectorSink(std::shared_ptr<ParameterVector> vector, const protocol::Manifest& manifest)
      : vector_(std::move(vector)), chunk_size_(manifest.chunk_size), present_(manifest.chunk_count()) {}

  bool has(std::size_t chunk) const override { return present_[chunk]; }
  Result<void> write(std::size_t chunk, std::span<const std::byte> bytes) override {
    const auto all = std::as_writable_bytes(vector_->values());
    if (chunk * chunk_size_ + bytes.size() > all.size()) return invalid("a chunk lies beyond the model");
    std::memcpy(all.data() + chunk * chunk_size_, bytes.data(), bytes.size());
    present_[chunk] = true;
    return {};
  }

 private:
  std::shared_ptr<ParameterVector> vector_;
  std::size_t chunk_size_;
  std::vector<bool> present_;
};

class PayloadSource final : public protocol::ChunkSource {
 public:
  PayloadSource(std::shared_ptr<const WorkResult> update, std::size_t chunk_size)
      : update_(std::move(update)), chunk_size_(chunk_size) {}

  Result<void> read(std::size_t chunk, std::span<std::byte> out) override {
    std::memcpy(out.data(), update_->payload().data() + chunk * chunk_size_, out.size());
    return {};
  }

 private:
  std::shared_ptr<const WorkResult> update_;
  std::size_t chunk_size_;
};

}  // namespace fedge::client
