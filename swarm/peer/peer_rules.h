// What a peer of a swarm keeps to. The defaults suit members of one run, who have no reason to hold back; the
// file says beside each what it costs the others when a neighbour does.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/ids.h"
#include "core/time.h"

namespace fedge::swarm {

// The coordinator as a member of a swarm: it has a number like every other.
inline constexpr ClientId kCoordinator{0xffff'ffff};

struct PeerRules {
  std::uint64_t upload_limit = 0;  // bytes of chunks a second; 0: none
  // Neighbours that are sent chunks at a time, the optimistic one among them.
  std::size_t upload_slots = 16;
  Duration rechoke = seconds(10);     // until the slots are given out anew
  Duration optimistic = seconds(30);  // until somebody else is tried
  // A neighbour that has not sent anything for so long, although it was asked: others are asked as well. A
  // silent one costs so much once.
  Duration snub = seconds(10);
  // When nothing else is left to ask for, so long a chunk may be waited for before another is asked as well.
  Duration endgame = seconds(2);
  Duration announce = std::chrono::milliseconds(50);  // what has come is told at once for so long
  std::size_t bad_chunks = 3;                         // with wrong bytes: then the neighbour is dropped
  std::size_t strikes = 16;                           // of other kinds, likewise
};

}  // namespace fedge::swarm
