// Search: one iterative lookup at the node that makes it, as a pure state machine: it says whom to ask next
// and is told what they answered. Two kinds: along a route, one node at a time (Chord, Pastry), and by XOR
// distance, several at once (Kademlia; Maymounkov and Mazieres 2002, section 2.3). Owned by a node; one
// thread. Memory is bounded by kMaxAsked nodes asked and, by XOR, twice `width` candidates.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "sim/overlays/message.h"

namespace fedge::sim {

inline constexpr std::size_t kMaxAsked = 128;

enum class Goal : std::uint8_t {
  kNodes,   // who is responsible, as the last node on the way says
  kOwner,   // the same, and the owner has been asked itself
  kValues,  // what lies under the key; the first holder ends the search
};

struct SearchOutcome {
  std::vector<Contact> nodes;  // responsible, the owner first; empty: the search failed
  std::vector<Value> values;
  Contact holder;   // who gave the values
  Contact lacking;  // by XOR: the closest that answered and had none
  std::uint32_t hops = 0;
  std::uint32_t messages = 0;
  std::uint32_t timeouts = 0;

  // As new, but for the memory of its lists.
  void clear() {
    nodes.clear();
    values.clear();
    holder = lacking = {};
    hops = messages = timeouts = 0;
  }
};

struct SearchStart {
  Id target = 0;
  Contact self;
  Goal goal = Goal::kNodes;
};

class Search {
 public:
  virtual ~Search() = default;
  // Forgets everything and begins with these contacts, which the node itself knew.
  virtual void start(const SearchStart& start, Found found, std::span<const Contact> contacts) = 0;
  // Whom to ask now; nothing: nobody for the moment, or it is over.
  virtual std::optional<Contact> next() = 0;
  virtual void answered(const Message& reply) = 0;
  virtual void silent(const Contact& who) = 0;
  virtual bool done() const = 0;
  // An answer is going to come: ask for the memory of the lists.
  virtual void prefetch() const = 0;

  SearchOutcome& outcome() { return outcome_; }
  const SearchOutcome& outcome() const { return outcome_; }

 protected:
  SearchOutcome outcome_;
};

std::unique_ptr<Search> make_routed_search();
// `alpha` requests at a time; over when the `width` closest have answered.
std::unique_ptr<Search> make_xor_search(std::size_t alpha, std::size_t width);

}  // namespace fedge::sim
