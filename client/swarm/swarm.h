// Swarm: this client among the others that exchange a model's chunks. It accepts and makes links to those
// that the coordinator names, each pinned to the key that it names, keeps them as long as any object is
// exchanged over them, and drives an Exchange, of which the coordinator's link is one neighbour. All on the
// io_context's thread. Owned by shared_ptr, since links and timers call back; shut_down() lets go of them.
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
  std::optional<protocol::Address> listen;  // where others may connect; none: it only connects itself
  // What others are told to connect to, as Hello's `listens`: a port at the address that the coordinator
  // sees. Empty: the port where it listens.
  std::string announce;
  std::uint64_t upload_limit = 0;  // bytes of chunks a second, to all together; 0: none
};

class Swarm {
 public:
  struct Self {
    ClientId client;
    std::shared_ptr<protocol::TlsIdentity> identity;
    std::string software;
    std::function<void(const Event&)> on_event;
    // Reads what is sealed for this client.
    std::function<Result<std::vector<std::byte>>(std::span<const std::byte>)> unseal;
  };
  // The error says where it cannot listen.
  static Result<std::shared_ptr<Swarm>> create(boost::asio::io_context& io, Self self,
                                               const SwarmOptions& options);
  virtual ~Swarm() = default;

  // For Hello; empty if it does not listen.
  virtual const std::string& listens() const = 0;
  // The coordinator's link; null: it is gone.
  virtual void use(std::shared_ptr<protocol::Link> link) = 0;
  // What has come over it. False if that is nothing of a swarm's.
  virtual bool received(const protocol::Message& message) = 0;
  // Exchanges the object until close(), with the members that the coordinator names of it, or with those of
  // another object; `done` is called once, when every wanted chunk is there.
  virtual void open(swarm::Exchange::Object object, std::function<void(const Result<void>&)> done) = 0;
  virtual void open_as(const protocol::ObjectId& other, swarm::Exchange::Object object,
                       std::function<void(const Result<void>&)> done) = 0;
  virtual void close(const protocol::ObjectId& object) = 0;
  // A warm-up: objects that are opened for it, as its swarm's, are exchanged as its tracker says; then with
  // the members of `other` as well, like everything else; until close() of its swarm.
  virtual void begin_warmup(const protocol::WarmupPlan& plan, const protocol::ObjectId& own) = 0;
  virtual void carry_out(const protocol::ObjectId& swarm, const protocol::WarmupSlot& slot) = 0;
  virtual void end_warmup(const protocol::ObjectId& swarm, const protocol::ObjectId& other) = 0;
  virtual const swarm::Peer::Figures& figures() const = 0;
  virtual void shut_down() = 0;
};

}  // namespace fedge::client
