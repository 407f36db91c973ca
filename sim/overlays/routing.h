// Routing: one overlay's tables at one node, and the protocol that keeps them: Chord, Pastry or Kademlia. A
// pure state machine: it is told what happened and answers through its Host, which is the node around it
// (requests, values, lookups) and which knows time and a named random stream. Owned by its node; one thread.
// route() and responsible() are on the path of every message: tens of contacts are looked at, nothing is
// allocated but in `out`.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "core/rng.h"
#include "sim/overlays/options.h"
#include "sim/overlays/search.h"

namespace fedge::sim {

struct FindOptions {
  Id target = 0;
  Goal goal = Goal::kNodes;
  Purpose purpose = Purpose::kMaintenance;
  std::uint32_t tag = 0;  // comes back with searched()
  Contact via;            // ask this one first; unknown: begin with the node's own tables
  bool want_tables = false;
};

class Host {
 public:
  virtual ~Host() = default;
  virtual const Contact& self() const = 0;
  virtual Time now() const = 0;
  virtual Rng& rng() = 0;
  // A list for use within a call.
  virtual std::vector<Contact>& scratch() = 0;
  // A request; its reply comes with replied(tag), a time-out with silent(). A second message that wants no
  // reply.
  virtual Message& request(const Contact& to, Kind kind, Purpose purpose, std::uint32_t tag) = 0;
  virtual Message& tell(const Contact& to, Kind kind, Purpose purpose) = 0;
  virtual void find(const FindOptions& options) = 0;
  // It did not answer lately, and has not been heard since.
  virtual bool suspected(Address address) const = 0;
  // The end of a join, either way. After a failure, and when everybody is lost, a new bootstrap is asked for.
  virtual void joined(bool well) = 0;
};

// How far away a node is, as the application tells Pastry: one way, without chance.
using Proximity = std::function<Duration(Address, Address)>;

class Routing {
 public:
  virtual ~Routing() = default;
  virtual void clear() = 0;
  virtual void join(const Contact& bootstrap, Host& host) = 0;
  virtual void tick(Host& host) = 0;
  // The next step towards the key: see Found.
  virtual Found route(Id key, std::vector<Contact>& out) const = 0;
  // The `count` nodes that this one would hold responsible, itself among them, the owner first. Chord and
  // Pastry can tell only near themselves; further off they leave `out` empty.
  virtual void responsible(Id key, std::size_t count, std::vector<Contact>& out) const = 0;
  // Adds what a request asks of the tables to the reply.
  virtual void answer(const Message& request, Message& reply, Host& host) = 0;
  virtual void replied(const Message& reply, std::uint32_t tag, Host& host) = 0;
  // A message that wants no reply.
  virtual void told(const Message& message, Host& host) = 0;
  // The node itself is about to look for this id.
  virtual void looked_for(Id /*target*/) {}
  virtual void searched(std::uint32_t tag, const SearchOutcome& outcome, Host& host) = 0;
  // Whether this may be such a contact: the id is one that the node can prove to have.
  virtual bool believable(const Contact& /*contact*/) const { return true; }
  // A message of any kind came from this node.
  virtual void heard(const Contact& contact, bool ping, Host& host) = 0;
  // It did not answer, or has said that it leaves.
  virtual void silent(const Contact& contact, Host& host) = 0;
  // Who should hear of a departure.
  virtual void neighbours(std::vector<Contact>& out) const = 0;
  virtual std::size_t contacts() const = 0;  // size of the state
  virtual std::unique_ptr<Search> make_search() const = 0;
  // A message from a node of this id, on this key, is going to be looked at: ask for the memory.
  virtual void prefetch(Id from, Id key) const = 0;
  // Perfect tables out of global knowledge: `everybody` is sorted by id.
  virtual void fill(std::span<const Contact> everybody, Rng& rng) = 0;
};

// The identities must outlive it.
std::unique_ptr<Routing> make_routing(const Contact& self, const OverlayOptions& options,
                                      const Proximity& proximity, const Identities& identities);

}  // namespace fedge::sim
