// The messages of a serverless round's warm-up, in which updates are exchanged so that their origin is
// hidden (docs/algorithms/serverless.md). Part of messages.h.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/crypto/ed25519.h"
#include "core/crypto/sha256.h"
#include "core/ids.h"
#include "protocol/chunks/manifest.h"

namespace fedge::protocol {

// Coordinator to each member: the rules of the warm-up. The updates follow as ServerlessUpdate.
struct WarmupPlan {
  struct Neighbour {
    std::uint32_t number = 0;
    ClientId client;
    bool operator==(const Neighbour&) const = default;
  };
  RunId run;
  RoundNumber round;
  TrackId track;
  ObjectId swarm{};                   // an id; SwarmMembers with this id names the neighbours
  Digest commitment{};                // to the seed that WarmupOver reveals
  std::uint32_t members = 0;          // 3 to kMaxAggregated
  std::uint32_t number = 0;           // the receiver's number, less than `members`
  std::uint32_t degree = 0;           // least number of neighbours of each member
  std::uint32_t chunks = 0;           // of each update
  std::uint32_t cover = 0;            // own chunks become eligible once others + kappa reach it
  std::uint32_t kappa = 0;            // number of own chunks that then become eligible
  std::uint32_t lag = 0;              // first slot in which the receiver sends
  std::uint32_t spray = 0;            // number of own chunks that it sprays
  std::vector<Neighbour> neighbours;  // ascending by number; at most kMaxSwarmMembers

  TaskId task() const { return {round, track}; }
  bool operator==(const WarmupPlan&) const = default;
};

// A member's orders for one slot.
struct WarmupSlot {
  // Ask this neighbour for a chunk.
  struct Ask {
    ObjectId object{};
    std::uint32_t chunk = 0;
    ClientId from;
    bool operator==(const Ask&) const = default;
  };
  // Send a chunk of the receiver's own update through the neighbour `over` to the client `to`, encrypted so
  // that only `to` can read it.
  struct Spray {
    std::uint32_t chunk = 0;
    ClientId over;
    ClientId to;
    PublicKey key;  // of `to`
    bool operator==(const Spray&) const = default;
  };
  RunId run;
  RoundNumber round;
  TrackId track;
  std::uint32_t slot = 0;     // from 0 on; sprays are sent before
  std::vector<Ask> asks;      // at most kMaxWarmupOrders
  std::vector<Spray> sprays;  // likewise

  TaskId task() const { return {round, track}; }
  bool operator==(const WarmupSlot&) const = default;
};

// The warm-up has ended: from now on the updates are exchanged like a model.
struct WarmupOver {
  RunId run;
  RoundNumber round;
  TrackId track;
  std::uint64_t seed = 0;
  std::string failure;  // why the updates' origin may not be hidden; empty: it is hidden

  TaskId task() const { return {round, track}; }
  bool operator==(const WarmupOver&) const = default;
};

// Between peers: a chunk encrypted for one client; any other receiver passes it on.
struct SealedChunk {
  ObjectId swarm{};
  ClientId to;
  std::vector<std::byte> sealed;  // 1 to kMaxSealedChunk bytes
  bool operator==(const SealedChunk&) const = default;
};

}  // namespace fedge::protocol
