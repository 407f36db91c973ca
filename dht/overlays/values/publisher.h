// Publisher: the values of one overlay node: those that it publishes, those that it holds for others, and
// their repair. It chooses holders with the node's tables, and acts through its host, the node. A pure state
// machine, owned by its node; one thread. The cost of a call is that of its messages; tick() visits every
// stored value.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "dht/overlays/effects.h"
#include "dht/overlays/requests.h"
#include "dht/overlays/routing.h"
#include "dht/overlays/values/value_store.h"

namespace fedge::dht {

// A value that a node publishes, and republishes every T_rep rounds until it stops.
struct Publication {
  Id key = 0;
  std::uint64_t slot = 0;
  std::uint64_t sequence = 0;
  std::shared_ptr<const std::vector<std::byte>> bytes;
  std::optional<Time> expires;  // nothing: three times T_rep after each publication
};

class PublisherHost {
 public:
  virtual ~PublisherHost() = default;
  virtual Time now() const = 0;
  // Sends a request. For the use kStore it ends in stored(), for kRepair in pushed(), if it is answered.
  virtual Message& ask(const OpenRequest& request, Kind kind, Purpose purpose) = 0;
  // Sends a one-way message.
  virtual Message& tell(const Contact& to, Kind kind, Purpose purpose) = 0;
  // Searches the nodes that are responsible for the key; the result goes to found(tag).
  virtual void find_holders(Id key, Purpose purpose, std::uint32_t tag) = 0;
  virtual void published(const PublishResult& result) = 0;
};

class Publisher {
 public:
  // `options` and `routing` must outlive the publisher.
  Publisher(Address self, const OverlayOptions& options, const Routing& routing, StorePolicy policy);

  // Forgets everything; later answers are ignored.
  void clear();
  // Replaces what the node published under this key and slot. Waits for the next tick if `member` is false.
  void publish(const Publication& publication, Operation operation, bool member, PublisherHost& host);
  void withdraw(Id key, std::uint64_t slot);
  // Publishes again what is due, and repairs. Call it once a round, while the node is a member.
  void tick(PublisherHost& host);
  // Transfers the stored values before the node leaves.
  void leave(PublisherHost& host);

  // Takes a store message from another node. Returns whether every value was stored. A message without
  // contacts is a cached copy from a lookup.
  bool take(const Message& message, Time now);
  // The search for the nodes of a value has ended.
  void found(std::uint32_t tag, const std::vector<Contact>& nodes, PublisherHost& host);
  // A request to store a value was answered, or not.
  void stored(const OpenRequest& request, bool answered, bool accepted, PublisherHost& host);
  // A new holder has answered to a stored value.
  void pushed(const OpenRequest& request);

  ValueStore& store() { return store_; }
  const ValueStore& store() const { return store_; }

 private:
  struct Publishing {         // a value being sent to its holders
    Operation operation = 0;  // 0: no result is expected
    std::uint32_t generation = 0;
    bool busy = false;
    std::uint32_t waiting = 0;
    bool moved = false;  // the node held it without being responsible
    Purpose purpose = Purpose::kPublish;
    Value value;
    PublishResult result;
    Time started{};
  };
  struct Standing {  // a standing publication
    Publication publication;
    Pace pace;
    Operation first = 0;  // first operation, until it begins with membership
    bool again = false;   // repeat because it failed
  };

  void begin(const Standing& standing, Operation operation, PublisherHost& host);
  void send_away(const Value& value, Purpose purpose, Operation operation, PublisherHost& host);
  void finish(std::size_t index, PublisherHost& host);
  void repair(PublisherHost& host);
  bool repair(StoredValue& stored, const std::vector<Contact>& holders, PublisherHost& host);

  Address self_;
  const OverlayOptions& options_;
  const Routing& routing_;
  std::vector<Standing> standing_;
  std::vector<Publishing> publishings_;
  Pace repair_pace_;
  ValueStore store_;
};

}  // namespace fedge::dht
