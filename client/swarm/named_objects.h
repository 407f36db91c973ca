// NamedObjects: which clients the coordinator has named as members of each object's swarm, and which
// objects are exchanged with the members of another object. Beyond kMax objects the oldest one that is not
// open is forgotten. Owned by the swarm, on its thread.
#pragma once

#include <algorithm>
#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <set>
#include <vector>

#include "core/ids.h"
#include "protocol/chunks/manifest.h"

namespace fedge::client {

class NamedObjects {
 public:
  using ObjectId = protocol::ObjectId;
  using IsOpen = std::function<bool(const ObjectId&)>;
  static constexpr std::size_t kMax = 64;

  explicit NamedObjects(IsOpen is_open) : is_open_(std::move(is_open)) {}

  // The members of this object, which becomes a named one; the caller adds and removes members.
  std::set<ClientId>& name(const ObjectId& object) {
    const auto [named, added] = members_.try_emplace(object);
    if (added) order_.push_back(object);
    return named->second;
  }
  const std::set<ClientId>& members(const ObjectId& object) const {
    static const std::set<ClientId> nobody;
    const auto named = members_.find(object);
    return named == members_.end() ? nobody : named->second;
  }
  void exchange_like(const ObjectId& object, const ObjectId& other) { like_[object] = other; }
  // The object, and those that are exchanged with its members.
  std::vector<ObjectId> all_like(const ObjectId& named) const {
    std::vector<ObjectId> objects = {named};
    for (const auto& [object, other] : like_)
      if (other == named) objects.push_back(object);
    return objects;
  }

  bool names(ClientId client) const {
    return std::ranges::any_of(members_, [&](const auto& named) { return named.second.contains(client); });
  }
  // Whether the client is a member of an object that is open here.
  bool names_for_work(ClientId client) const {
    return std::ranges::any_of(members_, [&](const auto& named) {
      return named.second.contains(client) && std::ranges::any_of(all_like(named.first), is_open_);
    });
  }

  void forget(const ObjectId& object) {
    like_.erase(object);
    members_.erase(object);
    std::erase(order_, object);
  }
  void forget_oldest() {
    while (order_.size() > kMax) {
      const auto oldest = std::ranges::find_if_not(order_, is_open_);
      if (oldest == order_.end()) return;
      members_.erase(*oldest);
      order_.erase(oldest);
    }
  }

 private:
  IsOpen is_open_;
  std::map<ObjectId, std::set<ClientId>> members_;
  std::deque<ObjectId> order_;         // objects in the order of naming
  std::map<ObjectId, ObjectId> like_;  // object, and the object whose members exchange it
};

}  // namespace fedge::client
