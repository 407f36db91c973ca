// Search: one iterative lookup at the node that makes it, as a pure state machine: it says whom to ask next
// and is told what they answered. Two kinds: along a route, one node at a time (Chord, Pastry), and by XOR
// distance, several at once (Kademlia; Maymounkov and Mazieres 2002, section 2.3). Owned by a node; one
// thread. Memory is bounded by kMaxAsked nodes asked and, by XOR, `spare` times `width` candidates.
#pragma once

#include <algorithm>
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
  kNodes,      // who is responsible, as the last node on the way says
  kOwner,      // the same, and the owner has been asked itself
  kValues,     // what lies under the key; the first holder ends the search
  kAllValues,  // the same, and all that are responsible are asked
};

inline bool wants_values(Goal goal) { return goal == Goal::kValues || goal == Goal::kAllValues; }

struct SearchOutcome {
  std::vector<Contact> nodes;  // responsible, the owner first; empty: the search failed
  std::vector<Value> values;
  Contact holder;   // who gave the first of the values
  Contact lacking;  // by XOR: the closest that answered and had none
  std::uint32_t hops = 0;
  std::uint32_t messages = 0;
  std::uint32_t timeouts = 0;

  // Adds what one holder has, but for what is there already.
  void add_values(const std::vector<Value>& more) {
    for (const Value& value : more)
      if (std::none_of(values.begin(), values.end(), [&](const Value& had) { return same(had, value); }))
        values.push_back(value);
  }
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

struct XorSearchOptions {
  std::size_t alpha = 3;      // requests at a time
  std::size_t width = 20;     // over when so many of the closest have answered
  std::size_t spare = 2;      // so many times the width are kept: for those that turn out not to be there
  std::size_t per_group = 0;  // candidates of one group; 0: any number
  const Identities* identities = nullptr;
};
std::unique_ptr<Search> make_xor_search(const XorSearchOptions& options);
// Several of these that share no node: what each has asked the others leave out. The values of all, and the
// closest of all. `alpha` is for all together, at least one for each.
std::unique_ptr<Search> make_disjoint_search(const XorSearchOptions& options, std::size_t paths);

}  // namespace fedge::sim
