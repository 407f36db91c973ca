#include "server/kept_models.h"

#include <algorithm>
#include <utility>

namespace fedge::server {

bool KeptModels::is_kept(const protocol::ObjectId& id) const {
  return std::ranges::any_of(models_, [&](const auto& each) { return each.second->manifest().id() == id; });
}

bool KeptModels::holds(const protocol::ObjectId& id) const {
  const std::lock_guard lock(mutex_);
  return is_kept(id);
}

void KeptModels::remove(const protocol::ObjectId& id) {
  {
    const std::lock_guard lock(mutex_);
    if (is_kept(id)) return orphans_.push_back(id);
  }
  store_.remove(id);
}

// A model may have the values of one that is kept, and so its object.
Result<std::shared_ptr<protocol::StoredObject>> KeptModels::build(
    protocol::Manifest shape, const std::function<Result<void>(std::size_t, std::span<std::byte>)>& fill) {
  FEDGE_TRY(object, store_.build(std::move(shape), fill));
  const std::lock_guard lock(mutex_);
  std::erase(orphans_, object->manifest().id());
  return object;
}

void KeptModels::keep(Models models) {
  std::vector<protocol::ObjectId> unused;
  {
    const std::lock_guard lock(mutex_);
    models_ = std::move(models);
    const auto kept =
        std::partition(orphans_.begin(), orphans_.end(), [&](const auto& id) { return is_kept(id); });
    unused.assign(kept, orphans_.end());
    orphans_.erase(kept, orphans_.end());
  }
  for (const protocol::ObjectId& id : unused) store_.remove(id);
}

void KeptModels::take_up(Models models, const std::vector<protocol::ObjectId>& owned) {
  const std::lock_guard lock(mutex_);
  models_ = std::move(models);
  for (const auto& [track, object] : models_)
    if (const auto id = object->manifest().id();
        std::ranges::find(owned, id) == owned.end() && std::ranges::find(orphans_, id) == orphans_.end())
      orphans_.push_back(id);
}

}  // namespace fedge::server
