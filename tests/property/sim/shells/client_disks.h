// The clients' disks in a serverless run: the chunks that each client has and announces. Both shells read
// them, as a coordinator does through the messages of a swarm.
#pragma once

#include <map>
#include <memory>
#include <utility>

#include "core/ids.h"
#include "protocol/chunks/chunk_store.h"
#include "swarm/chunk_set.h"

namespace fedge::server::shells {

class ClientDisks {
 public:
  struct Object {
    std::shared_ptr<protocol::StoredObject> bytes;  // whole, whatever the client has
    swarm::ChunkSet has;
  };
  using Objects = std::map<protocol::ObjectId, Object>;

  // Returns null if the client does not exchange this object.
  const Object* find(ClientId client, const protocol::ObjectId& object) const {
    const auto disk = disks_.find(client);
    if (disk == disks_.end()) return nullptr;
    const auto found = disk->second.find(object);
    return found != disk->second.end() ? &found->second : nullptr;
  }
  const Objects& of(ClientId client) const {
    static const Objects none;
    const auto disk = disks_.find(client);
    return disk != disks_.end() ? disk->second : none;
  }
  void put(ClientId client, Object object) {
    const protocol::ObjectId id = object.bytes->manifest().id();
    disks_[client].insert_or_assign(id, std::move(object));
  }
  void remove(ClientId client, const protocol::ObjectId& object) { disks_[client].erase(object); }
  void clear(ClientId client) { disks_.erase(client); }

 private:
  std::map<ClientId, Objects> disks_;
};

// Whether other clients can connect to this one.
inline bool accepts_links(ClientId client) { return client.value() % 3 != 2; }

}  // namespace fedge::server::shells
