// Rules of a peer of a swarm. The defaults suit members of one run, who have no reason to withhold chunks.
// Where a neighbour may misbehave, the comment states the cost.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/ids.h"
#include "core/time.h"

namespace fedge::swarm {

// The coordinator's number as a member of swarms.
inline constexpr ClientId kCoordinator{0xffff'ffff};

// Minimum number of pending requests to a neighbour, used until it has sent more.
inline constexpr std::size_t kFewestAsked = 2;

struct PeerRules {
  std::uint64_t upload_limit = 0;  // bytes of chunks per second; 0: no limit
  // Number of neighbours served at a time, including the optimistic one.
  std::size_t upload_slots = 16;
  Duration rechoke = seconds(10);     // interval at which slots are reassigned
  Duration optimistic = seconds(30);  // interval at which the optimistic slot is reassigned
  // A neighbour that has pending requests and sends nothing for this long: its chunks are requested from
  // others too. A silent neighbour costs this delay once.
  Duration snub = seconds(10);
  // In the endgame, when every missing chunk was requested: a chunk is requested again after this time.
  Duration endgame = seconds(2);
  Duration announce = std::chrono::milliseconds(50);  // arrivals are collected for this long
  std::size_t bad_chunks = 3;                         // chunks with wrong bytes before a neighbour is dropped
  std::size_t strikes = 16;                           // other violations before a neighbour is dropped
  std::size_t reopenings = 8;  // times that a neighbour may open an object anew and lose or refuse chunks
};

}  // namespace fedge::swarm
