// The messages of the warm-up of a round without a server, in which updates are exchanged so that nobody can
// tell whose is whose (docs/algorithms/serverless.md). Part of messages.h.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/crypto/ed25519.h"
#include "core/crypto/sha256.h"
#include "core/ids.h"
#include "protocol/chunks/manifest.h"

namespace fedge::protocol {

// To each member of the warm-up: what it keeps to. The updates follow as ServerlessUpdate.
struct WarmupPlan {
  struct Neighbour {
    std::uint32_t number = 0;
    ClientId client;
    bool operator==(const Neighbour&) const = default;
  };
  RunId run;
  RoundNumber round;
  TrackId track;
  ObjectId swarm{};                   // a name: SwarmMembers says of it who the neighbours are
  Digest commitment{};                // to the seed that WarmupOver reveals
  std::uint32_t members = 0;          // 3 to kMaxAggregated
  std::uint32_t number = 0;           // the receiver's, less than `members`
  std::uint32_t degree = 0;           // neighbours that each has at least
  std::uint32_t chunks = 0;           // of each update
  std::uint32_t cover = 0;            // chunks to be eligible before own ones are
  std::uint32_t kappa = 0;            // own chunks that may be then
  std::uint32_t lag = 0;              // the first slot in which the receiver sends
  std::uint32_t spray = 0;            // own chunks that it sprays
  std::vector<Neighbour> neighbours;  // ascending by number; at most kMaxSwarmMembers

  TaskId task() const { return {round, track}; }
};

// What a member is to do in a slot.
struct WarmupSlot {
  // Ask this neighbour for a chunk.
  struct Ask {
    ObjectId object{};
    std::uint32_t chunk = 0;
    ClientId from;
    bool operator==(const Ask&) const = default;
  };
  // Send an own chunk to a client that is no neighbour, over a neighbour, so that only the former can read
  // it.
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
  std::uint32_t slot = 0;     // from 0 on; spraying comes before
  std::vector<Ask> asks;      // at most kMaxWarmupOrders
  std::vector<Spray> sprays;  // likewise

  TaskId task() const { return {round, track}; }
};

// From now on the updates are exchanged like a model.
struct WarmupOver {
  RunId run;
  RoundNumber round;
  TrackId track;
  std::uint64_t seed = 0;
  std::string failure;  // why whose is whose may not be hidden; empty: it is

  TaskId task() const { return {round, track}; }
};

// Between peers: a chunk on its way to a client, which alone can read it; whoever else gets this passes it
// on.
struct SealedChunk {
  ObjectId swarm{};
  ClientId to;
  std::vector<std::byte> sealed;  // 1 to kMaxSealedChunk bytes
};

}  // namespace fedge::protocol
