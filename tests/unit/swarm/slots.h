// A slot's state with its own data, random or filled by hand, for tests of schedulers.
#pragma once

#include <memory>
#include <vector>

#include "swarm/warmup/schedulers/schedulers.h"

namespace fedge::swarm::test {

class Slot {
 public:
  Slot(Overlay graph, std::size_t chunks_each, Rng rng)
      : overlay(std::move(graph)),
        universe(overlay.size(), chunks_each, rng),
        held(overlay.size(), ChunkSet(universe.size())),
        offered(held),
        up(overlay.size()),
        down(overlay.size()) {
    for (Pseudonym peer = 0; peer < overlay.size(); ++peer)
      for (const Chunk chunk : universe.chunks_of(peer)) held[peer].add(chunk);
  }

  // All clients hold random chunks of others, offer most of them, and have some budget or none.
  static Slot random(std::size_t nodes, std::size_t degree, std::size_t chunks_each, Rng rng) {
    Slot slot(Overlay::random(nodes, degree, rng.fork("overlay")), chunks_each, rng.fork("universe"));
    const std::uint64_t density = 1 + rng.below(8);
    for (Pseudonym peer = 0; peer < nodes; ++peer) {
      for (Chunk chunk = 0; chunk < slot.universe.size(); ++chunk)
        if (rng.below(10) < density) slot.held[peer].add(chunk);
      slot.held[peer].for_each([&](std::size_t chunk) {
        if (rng.below(4) > 0) slot.offered[peer].add(chunk);
      });
      slot.up[peer] = static_cast<std::uint32_t>(rng.below(8));
      slot.down[peer] = static_cast<std::uint32_t>(rng.below(12));
    }
    return slot;
  }

  SlotState state() {
    rarity = Rarity(universe.size());
    held_at.clear();
    offered_at.clear();
    for (Pseudonym peer = 0; peer < overlay.size(); ++peer) {
      held[peer].for_each([&](std::size_t chunk) { rarity.add_holder(chunk); });
      held_at.push_back(&held[peer]);
      offered_at.push_back(&offered[peer]);
    }
    return {overlay, universe, rarity, held_at, offered_at, up, down, up};
  }

  Overlay overlay;
  Universe universe;
  std::vector<ChunkSet> held;
  std::vector<ChunkSet> offered;
  std::vector<std::uint32_t> up;
  std::vector<std::uint32_t> down;
  Rarity rarity{0};
  std::vector<const ChunkSet*> held_at;
  std::vector<const ChunkSet*> offered_at;
};

}  // namespace fedge::swarm::test
