// CheckedSink: where the coordinator puts an update that it fetches. Every value is checked on its way
// into the store, so that none is refused when it is folded later.
#pragma once

#include <memory>
#include <optional>

#include "protocol/chunks/chunk_store.h"
#include "server/run_state.h"

namespace fedge::server {

class CheckedSink final : public protocol::ChunkSink {
 public:
  CheckedSink(const RunState& state, std::shared_ptr<protocol::StoredObject> object)
      : state_(state), object_(std::move(object)) {}
  bool has(std::size_t chunk) const override { return object_->has(chunk); }
  Result<void> write(std::size_t chunk, std::span<const std::byte> bytes) override {
    const std::span<const float> values(reinterpret_cast<const float*>(bytes.data()),
                                        bytes.size() / sizeof(float));
    const protocol::Manifest& manifest = object_->manifest();
    FEDGE_TRY_VOID(state_.check(manifest.coverage, manifest.first_value(chunk), values));
    const auto written = object_->write(chunk, bytes);
    if (!written) fault_ = written.error();
    return written;
  }
  // What went wrong on this machine, not at the peer.
  const std::optional<Error>& fault() const { return fault_; }

 private:
  const RunState& state_;
  std::optional<Error> fault_;
  std::shared_ptr<protocol::StoredObject> object_;
};

}  // namespace fedge::server
