// DeferredRemovals: a chunk store that postpones removals until its owner carries them out. A round's old
// model must stay until the new one is durable. All other calls are passed on.
#pragma once

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "protocol/chunks/chunk_store.h"

namespace fedge::server {

class DeferredRemovals final : public protocol::ChunkStore {
 public:
  explicit DeferredRemovals(std::unique_ptr<protocol::ChunkStore> store) : store_(std::move(store)) {}

  Result<std::shared_ptr<protocol::StoredObject>> create(const protocol::Manifest& manifest) override {
    return store_->create(manifest);
  }
  Result<std::shared_ptr<protocol::StoredObject>> build(
      protocol::Manifest shape,
      const std::function<Result<void>(std::size_t, std::span<std::byte>)>& fill) override {
    return store_->build(std::move(shape), fill);
  }
  std::shared_ptr<protocol::StoredObject> find(const protocol::ObjectId& id) override {
    return store_->find(id);
  }
  void remove(const protocol::ObjectId& id) override {
    const std::lock_guard lock(mutex_);
    removed_.push_back(id);
  }
  void settle() override { store_->settle(); }
  void trim() override { store_->trim(); }

  // Returns the removals since the last call, for carry_out().
  std::vector<protocol::ObjectId> take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(removed_, {});
  }
  // Returns the removed objects; their files are freed when the last user releases them.
  std::vector<std::shared_ptr<protocol::StoredObject>> carry_out(
      const std::vector<protocol::ObjectId>& removals) {
    std::vector<std::shared_ptr<protocol::StoredObject>> removed;
    for (const protocol::ObjectId& id : removals) {
      removed.push_back(store_->find(id));
      store_->remove(id);
    }
    return removed;
  }

 private:
  std::unique_ptr<protocol::ChunkStore> store_;
  std::mutex mutex_;
  std::vector<protocol::ObjectId> removed_;
};

}  // namespace fedge::server
