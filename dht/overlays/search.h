// Search: one iterative lookup at the node that makes it, as a pure state machine: it names the nodes to ask
// and receives their answers. Two kinds: along a route, one node at a time (Chord, Pastry), and by XOR
// distance, several at once (Kademlia; Maymounkov and Mazieres 2002, section 2.3). Owned by a node; one
// thread. Memory is bounded by kMaxAsked asked nodes and, by XOR, `spare` times `width` candidates.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "dht/overlays/message.h"

namespace fedge::dht {

inline constexpr std::size_t kMaxAsked = 128;

enum class Goal : std::uint8_t {
  kNodes,      // the responsible nodes, as the last node on the way reports
  kOwner,      // the same, but the owner itself must have answered
  kValues,     // values under the key; the first holder ends the search
  kAllValues,  // the same, but all responsible nodes are asked
};

inline bool wants_values(Goal goal) { return goal == Goal::kValues || goal == Goal::kAllValues; }

struct SearchOutcome {
  std::vector<Contact> nodes;  // responsible nodes, the owner first; empty: the search failed
  std::vector<Value> values;
  Contact holder;   // source of the first values
  Contact lacking;  // by XOR: the closest node that answered without a value
  std::uint32_t hops = 0;
  std::uint32_t messages = 0;
  std::uint32_t timeouts = 0;

  // Adds one holder's values except duplicates.
  void add_values(const std::vector<Value>& more) {
    for (const Value& value : more)
      if (std::none_of(values.begin(), values.end(), [&](const Value& had) { return same(had, value); }))
        values.push_back(value);
  }
  // Resets the outcome but keeps the memory of its lists.
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
  // Resets the search and starts it with these contacts from the node's own tables.
  virtual void start(const SearchStart& start, Found found, std::span<const Contact> contacts) = 0;
  // The next node to ask; nothing: none at the moment, or the search is done.
  virtual std::optional<Contact> next() = 0;
  virtual void answered(const Message& reply) = 0;
  virtual void silent(const Contact& who) = 0;
  virtual bool done() const = 0;
  // Prefetches the lists before an answer.
  virtual void prefetch() const = 0;

  SearchOutcome& outcome() { return outcome_; }
  const SearchOutcome& outcome() const { return outcome_; }

 protected:
  SearchOutcome outcome_;
};

std::unique_ptr<Search> make_routed_search();

struct XorSearchOptions {
  std::size_t alpha = 3;      // requests at a time
  std::size_t width = 20;     // the search ends when this number of the closest nodes have answered
  std::size_t spare = 2;      // candidates kept, in multiples of width, as a reserve for dead nodes
  std::size_t per_group = 0;  // candidates of one group; 0: no limit
  const Identities* identities = nullptr;
};
std::unique_ptr<Search> make_xor_search(const XorSearchOptions& options);
// Several XOR searches that share no node: each skips the nodes that others have asked. Returns the values of
// all and the closest nodes of all. `alpha` is shared, but at least one for each search.
std::unique_ptr<Search> make_disjoint_search(const XorSearchOptions& options, std::size_t paths);

}  // namespace fedge::dht
