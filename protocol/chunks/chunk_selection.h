// Fetching a part of a model: a device that trains only the first ranks of adapters needs no others. A
// chunk is the smallest unit of transfer, so the device fetches every chunk that holds a needed parameter.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "core/coverage.h"
#include "protocol/chunks/chunk_store.h"

namespace fedge::protocol {

// For each chunk of a plain float32 object of the whole layout: whether it holds one of these parameters.
std::vector<bool> chunks_of(const Manifest& manifest, const Coverage& parameters);

// The destination for a fetch of some of an object's chunks: it claims to have all others already.
class SelectedChunks final : public ChunkSink {
 public:
  SelectedChunks(std::shared_ptr<StoredObject> object, std::vector<bool> wanted)
      : object_(std::move(object)), wanted_(std::move(wanted)) {}
  bool has(std::size_t chunk) const override {
    return chunk >= wanted_.size() || !wanted_[chunk] || object_->has(chunk);
  }
  Result<void> write(std::size_t chunk, std::span<const std::byte> bytes) override {
    return object_->write(chunk, bytes);
  }

 private:
  std::shared_ptr<StoredObject> object_;
  std::vector<bool> wanted_;
};

}  // namespace fedge::protocol
