// Helpers of the overlay tests: networks at rest, and owners found by scanning all nodes.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "sim/overlays/chord.h"
#include "sim/overlays/kademlia.h"
#include "sim/overlays/network/network.h"
#include "sim/overlays/pastry.h"

namespace fedge::sim {

inline constexpr OverlayKind kAllKinds[] = {OverlayKind::kChord, OverlayKind::kPastry,
                                            OverlayKind::kKademlia};

inline OverlayOptions options_for(OverlayKind kind) {
  OverlayOptions options;
  options.kind = kind;
  return options;
}

// The distance to responsibility as each paper defines it; in contrast to the library, without sorting or
// trees.
inline Id badness(OverlayKind kind, Id node, Id key) {
  if (kind == OverlayKind::kChord) return node - key;  // clockwise from the key
  if (kind == OverlayKind::kKademlia) return node ^ key;
  const Id up = node - key;
  return std::min<Id>(up, Id{0} - up);
}

// Returns all members, the best first; ties go to the lower id.
inline std::vector<Contact> ranking(OverlayKind kind, std::vector<Contact> members, Id key) {
  std::sort(members.begin(), members.end(), [&](const Contact& a, const Contact& b) {
    const Id of_a = badness(kind, a.id, key);
    const Id of_b = badness(kind, b.id, key);
    return of_a != of_b ? of_a < of_b : a.id < b.id;
  });
  return members;
}

inline std::vector<Address> everybody(std::size_t nodes) {
  std::vector<Address> addresses;
  for (std::size_t i = 0; i < nodes; ++i) addresses.push_back(static_cast<Address>(i));
  return addresses;
}

inline void run_for(OverlayNetwork& network, double seconds_more) {
  network.run_until(network.now() + seconds(seconds_more));
}

// Starts one node after the other, then runs for a while.
inline void join_all(OverlayNetwork& network, double gap, double settle) {
  for (std::size_t i = 0; i < network.size(); ++i) {
    network.start(static_cast<Address>(i));
    run_for(network, gap);
  }
  run_for(network, settle);
}

inline std::shared_ptr<const std::vector<std::byte>> bytes_of(const std::string& text) {
  const auto* first = reinterpret_cast<const std::byte*>(text.data());
  return std::make_shared<const std::vector<std::byte>>(first, first + text.size());
}

inline std::string text_of(const Value& value) {
  return {reinterpret_cast<const char*>(value.bytes->data()), value.bytes->size()};
}

inline LookupResult look_up(OverlayNetwork& network, Address from, Id key, double patience = 15) {
  LookupResult result;
  bool done = false;
  network.lookup(from, key, [&](const LookupResult& got) {
    result = got;
    done = true;
  });
  run_for(network, patience);
  CHECK(done);
  return result;
}

// Returns the nodes that hold a value under the key, by inspecting every node.
inline std::set<Address> holders_of(OverlayNetwork& network, Id key) {
  std::set<Address> holders;
  for (const Contact& member : network.members()) {
    std::vector<Value> values;
    network.node(member.address).store().find(key, network.now(), values);
    if (!values.empty()) holders.insert(member.address);
  }
  return holders;
}

inline std::set<Address> best(OverlayKind kind, const OverlayNetwork& network, Id key, std::size_t count) {
  std::set<Address> addresses;
  const auto ranked = ranking(kind, network.members(), key);
  for (std::size_t i = 0; i < count && i < ranked.size(); ++i) addresses.insert(ranked[i].address);
  return addresses;
}

}  // namespace fedge::sim
