// Helpers of the overlay tests: networks at rest, and owners found by scanning all nodes.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "dht/overlays/chord.h"
#include "dht/overlays/kademlia.h"
#include "dht/overlays/pastry.h"
#include "sim/overlays/network.h"

namespace fedge::sim {

inline constexpr dht::OverlayKind kAllKinds[] = {dht::OverlayKind::kChord, dht::OverlayKind::kPastry,
                                                 dht::OverlayKind::kKademlia};

inline dht::OverlayOptions options_for(dht::OverlayKind kind) {
  dht::OverlayOptions options;
  options.kind = kind;
  return options;
}

// The distance to responsibility as each paper defines it; in contrast to the library, without sorting or
// trees.
inline dht::Id badness(dht::OverlayKind kind, dht::Id node, dht::Id key) {
  if (kind == dht::OverlayKind::kChord) return node - key;  // clockwise from the key
  if (kind == dht::OverlayKind::kKademlia) return node ^ key;
  const dht::Id up = node - key;
  return std::min<dht::Id>(up, dht::Id{0} - up);
}

// Returns all members, the best first; ties go to the lower id.
inline std::vector<dht::Contact> ranking(dht::OverlayKind kind, std::vector<dht::Contact> members,
                                         dht::Id key) {
  std::sort(members.begin(), members.end(), [&](const dht::Contact& a, const dht::Contact& b) {
    const dht::Id of_a = badness(kind, a.id, key);
    const dht::Id of_b = badness(kind, b.id, key);
    return of_a != of_b ? of_a < of_b : a.id < b.id;
  });
  return members;
}

inline std::vector<dht::Address> everybody(std::size_t nodes) {
  std::vector<dht::Address> addresses;
  for (std::size_t i = 0; i < nodes; ++i) addresses.push_back(static_cast<dht::Address>(i));
  return addresses;
}

inline void run_for(OverlayNetwork& network, double seconds_more) {
  network.run_until(network.now() + seconds(seconds_more));
}

// Starts one node after the other, then runs for a while.
inline void join_all(OverlayNetwork& network, double gap, double settle) {
  for (std::size_t i = 0; i < network.size(); ++i) {
    network.start(static_cast<dht::Address>(i));
    run_for(network, gap);
  }
  run_for(network, settle);
}

inline std::shared_ptr<const std::vector<std::byte>> bytes_of(const std::string& text) {
  const auto* first = reinterpret_cast<const std::byte*>(text.data());
  return std::make_shared<const std::vector<std::byte>>(first, first + text.size());
}

inline std::string text_of(const dht::Value& value) {
  return {reinterpret_cast<const char*>(value.bytes->data()), value.bytes->size()};
}

inline dht::LookupResult look_up(OverlayNetwork& network, dht::Address from, dht::Id key,
                                 double patience = 15) {
  dht::LookupResult result;
  bool done = false;
  network.lookup(from, key, [&](const dht::LookupResult& got) {
    result = got;
    done = true;
  });
  run_for(network, patience);
  CHECK(done);
  return result;
}

// Returns the nodes that hold a value under the key, by inspecting every node.
inline std::set<dht::Address> holders_of(OverlayNetwork& network, dht::Id key) {
  std::set<dht::Address> holders;
  for (const dht::Contact& member : network.members()) {
    std::vector<dht::Value> values;
    network.node(member.address).store().find(key, network.now(), values);
    if (!values.empty()) holders.insert(member.address);
  }
  return holders;
}

inline std::set<dht::Address> best(dht::OverlayKind kind, const OverlayNetwork& network, dht::Id key,
                                   std::size_t count) {
  std::set<dht::Address> addresses;
  const auto ranked = ranking(kind, network.members(), key);
  for (std::size_t i = 0; i < count && i < ranked.size(); ++i) addresses.insert(ranked[i].address);
  return addresses;
}

}  // namespace fedge::sim
