// Peers: the clients that are connected, with their links, whatever runs they take part in. One thread.
#pragma once

#include <map>
#include <memory>
#include <utility>

#include "core/ids.h"
#include "protocol/session/link.h"

namespace fedge::server {

class Peers {
 public:
  using Links = std::map<ClientId, std::shared_ptr<protocol::Link>>;

  // Null if it is not connected.
  std::shared_ptr<protocol::Link> find(ClientId client) const {
    const auto peer = links_.find(client);
    return peer != links_.end() ? peer->second : nullptr;
  }
  const Links& links() const { return links_; }
  void add(ClientId client, std::shared_ptr<protocol::Link> link) { links_[client] = std::move(link); }
  void remove(ClientId client) { links_.erase(client); }

 private:
  Links links_;
};

}  // namespace fedge::server
