// Routing: one overlay's tables at one node, and the protocol that maintains them: Chord, Pastry or Kademlia.
// A pure state machine: it receives events and acts through its Host, the surrounding node (requests, values,
// lookups, time and a random stream). Owned by its node; one thread. route() and responsible() run for every
// message: they visit tens of contacts and allocate only in `out`.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "core/rng.h"
#include "dht/overlays/options.h"
#include "dht/overlays/search.h"

namespace fedge::dht {

struct FindOptions {
  Id target = 0;
  Goal goal = Goal::kNodes;
  Purpose purpose = Purpose::kMaintenance;
  std::uint32_t tag = 0;  // passed on to searched()
  Contact via;            // first contact to ask; unknown: start with the node's own tables
  bool want_tables = false;
};

class Host {
 public:
  virtual ~Host() = default;
  virtual const Contact& self() const = 0;
  virtual Time now() const = 0;
  virtual Rng& rng() = 0;
  // Scratch list within a call.
  virtual std::vector<Contact>& scratch() = 0;
  // request() sends a request: its reply calls replied(tag), a timeout calls silent(). tell() sends a one-way
  // message.
  virtual Message& request(const Contact& to, Kind kind, Purpose purpose, std::uint32_t tag) = 0;
  virtual Message& tell(const Contact& to, Kind kind, Purpose purpose) = 0;
  virtual void find(const FindOptions& options) = 0;
  // True if the node did not answer recently and has not been heard since.
  virtual bool suspected(Address address) const = 0;
  // Ends a join. After a failure, or when all contacts are lost, the node asks for a new bootstrap.
  virtual void joined(bool well) = 0;
};

// One-way delay between two nodes without the random factor, as the application reports it to Pastry.
using Proximity = std::function<Duration(Address, Address)>;

class Routing {
 public:
  virtual ~Routing() = default;
  virtual void clear() = 0;
  virtual void join(const Contact& bootstrap, Host& host) = 0;
  virtual void tick(Host& host) = 0;
  // The next step towards the key: see Found.
  virtual Found route(Id key, std::vector<Contact>& out) const = 0;
  // The `count` nodes that this node considers responsible, including itself, the owner first. Chord and
  // Pastry know them only for keys near themselves; otherwise `out` stays empty.
  virtual void responsible(Id key, std::size_t count, std::vector<Contact>& out) const = 0;
  // Adds to the reply what a request asks of the tables.
  virtual void answer(const Message& request, Message& reply, Host& host) = 0;
  virtual void replied(const Message& reply, std::uint32_t tag, Host& host) = 0;
  // Handles a one-way message.
  virtual void told(const Message& message, Host& host) = 0;
  // Called before the node itself looks for this id.
  virtual void looked_for(Id /*target*/) {}
  virtual void searched(std::uint32_t tag, const SearchOutcome& outcome, Host& host) = 0;
  // True if the contact is believable: the node can prove to have this id.
  virtual bool believable(const Contact& /*contact*/) const { return true; }
  // Called for every message from this node.
  virtual void heard(const Contact& contact, bool ping, Host& host) = 0;
  // The node did not answer, or announced that it leaves.
  virtual void silent(const Contact& contact, Host& host) = 0;
  // Appends the nodes to notify of a departure.
  virtual void neighbours(std::vector<Contact>& out) const = 0;
  virtual std::size_t contacts() const = 0;  // number of stored contacts
  virtual std::unique_ptr<Search> make_search() const = 0;
  // Prefetches the tables for a message from a node with this id about this key.
  virtual void prefetch(Id from, Id key) const = 0;
  // Fills perfect tables from global knowledge; `everybody` must be sorted by id.
  virtual void fill(std::span<const Contact> everybody, Rng& rng) = 0;
};

// `identities` must outlive the result.
std::unique_ptr<Routing> make_routing(const Contact& self, const OverlayOptions& options,
                                      const Proximity& proximity, const Identities& identities);

// The member that is responsible for the key: Chord's successor, Pastry's numerically closest (of two, the
// lower id), Kademlia's closest by XOR. `members` must be sorted by id and not empty. O(log n); Kademlia O(64
// log n).
Contact global_owner(OverlayKind kind, const std::vector<Contact>& members, Id key);

}  // namespace fedge::dht
