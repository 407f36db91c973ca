// Swarm: this client among the clients that exchange a model's chunks. It accepts and opens links to the
// clients that the coordinator names, each pinned to the key in its entry. It keeps a link while any object
// is exchanged over it. It drives an Exchange, in which the coordinator's link is one neighbour. All on the
// io_context's thread. Owned by shared_ptr, since links and timers call back; shut_down() ends both.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/event.h"
#include "core/ids.h"
#include "protocol/session/endpoint.h"
#include "swarm/exchange.h"

namespace fedge::client {

struct SwarmOptions {
  std::optional<protocol::Address> listen;  // where others may connect; none: outgoing connections only
  // The address that other clients are told, as Hello's `listens`: a port at the address that the
  // coordinator sees. Empty: the port of `listen`.
  std::string announce;
  std::uint64_t upload_limit = 0;  // bytes of chunks per second, over all peers; 0: no limit
};

class Swarm {
 public:
  struct Self {
    ClientId client;
    std::shared_ptr<protocol::TlsIdentity> identity;
    std::string software;
    std::function<void(const Event&)> on_event;
    // Decrypts data that is sealed for this client.
    std::function<Result<std::vector<std::byte>>(std::span<const std::byte>)> unseal;
  };
  // The error names the address at which it cannot listen.
  static Result<std::shared_ptr<Swarm>> create(boost::asio::io_context& io, Self self,
                                               const SwarmOptions& options);
  virtual ~Swarm() = default;

  // For Hello; empty if this client does not listen.
  virtual const std::string& listens() const = 0;
  // Sets the coordinator's link; null: disconnected.
  virtual void use(std::shared_ptr<protocol::Link> link) = 0;
  // Handles a message from that link. False if it does not concern swarms.
  virtual bool received(const protocol::Message& message) = 0;
  // Exchanges the object until close(), with the members that the coordinator names for it (open_as: for
  // `other`). Calls `done` once, when every wanted chunk has arrived, or with an error.
  virtual void open(swarm::Exchange::Object object, std::function<void(const Result<void>&)> done) = 0;
  virtual void open_as(const protocol::ObjectId& other, swarm::Exchange::Object object,
                       std::function<void(const Result<void>&)> done) = 0;
  virtual void close(const protocol::ObjectId& object) = 0;
  // Warm-up: objects opened as its swarm's (open_as) are exchanged as the coordinator schedules. After
  // end_warmup() they are exchanged with the members of `other` like all others, until close() of its
  // swarm.
  virtual void begin_warmup(const protocol::WarmupPlan& plan, const protocol::ObjectId& own) = 0;
  virtual void carry_out(const protocol::ObjectId& swarm, const protocol::WarmupSlot& slot) = 0;
  virtual void end_warmup(const protocol::ObjectId& swarm, const protocol::ObjectId& other) = 0;
  virtual const swarm::Peer::Figures& figures() const = 0;
  virtual void shut_down() = 0;
};

}  // namespace fedge::client
