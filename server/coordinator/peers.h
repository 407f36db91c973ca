// Peers: the connected clients of all runs, with their links. Use it on one thread.
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

  // Returns null if the client is not connected.
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
