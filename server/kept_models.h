// KeptModels: the models of a run's best round (run.keep_best). It is a chunk store between the run's models
// and theirs: an object that is kept stays although its model moves on, until a better round replaces it.
// Thread-safe like the store behind it; keep() and take_up() are externally synchronised.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "core/ids.h"
#include "protocol/chunks/chunk_store.h"

namespace fedge::server {

class KeptModels final : public protocol::ChunkStore {
 public:
  using Models = std::map<TrackId, std::shared_ptr<protocol::StoredObject>>;

  // `store` must outlive it.
  explicit KeptModels(protocol::ChunkStore& store) : store_(store) {}

  // Keeps these models instead of those before, which are removed if their owners have removed them.
  void keep(Models models);
  // Takes up models of an earlier process, which nobody may own.
  void take_up(Models models, const std::vector<protocol::ObjectId>& owned);
  const Models& models() const { return models_; }
  bool holds(const protocol::ObjectId& id) const;

  Result<std::shared_ptr<protocol::StoredObject>> create(const protocol::Manifest& manifest) override {
    return store_.create(manifest);
  }
  Result<std::shared_ptr<protocol::StoredObject>> build(
      protocol::Manifest shape,
      const std::function<Result<void>(std::size_t, std::span<std::byte>)>& fill) override;
  std::shared_ptr<protocol::StoredObject> find(const protocol::ObjectId& id) override {
    return store_.find(id);
  }
  void remove(const protocol::ObjectId& id) override;
  void settle() override { store_.settle(); }
  void trim() override { store_.trim(); }

 private:
  bool is_kept(const protocol::ObjectId& id) const;

  protocol::ChunkStore& store_;
  mutable std::mutex mutex_;
  Models models_;
  std::vector<protocol::ObjectId> orphans_;  // kept objects whose owners have removed them
};

}  // namespace fedge::server
