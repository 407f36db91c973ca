// Neighbour: a peer's state for one linked neighbour, across all objects. A plain record owned by Peer.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/time.h"

namespace fedge::swarm {

struct Neighbour {
  bool choked = true;        // it chokes this peer
  bool interested = false;   // it is interested in this peer's chunks
  bool choking = true;       // this peer chokes it
  bool interesting = false;  // it was told that this peer is interested
  std::size_t unsent = 0;    // bytes handed to its link and not yet written, of all shares
  // Chunks that arrived in the current second and in the previous one.
  std::size_t arrivals = 0;
  std::size_t arrivals_before = 0;
  std::uint64_t sent = 0;      // bytes since the last choice of slots
  std::uint64_t received = 0;  // bytes since the last choice of slots
  Time heard{};                // last chunk from it, or first request while none was pending
  Time wait_until{};           // until then its link has no credit for requests
  std::size_t asked_bytes = 0;
  std::size_t asked = 0;  // chunks requested from it
  std::size_t bad = 0;
  std::size_t strikes = 0;
  bool dropped = false;
};

}  // namespace fedge::swarm
