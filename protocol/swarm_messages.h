// The messages about objects that clients exchange: who exchanges them, what peers say to each other, and, of
// rounds without a server, which updates there are and what is made of them. Part of messages.h.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/crypto/ed25519.h"
#include "core/ids.h"
#include "core/result.h"
#include "protocol/chunks/manifest.h"

namespace fedge::protocol {

// One who exchanges an object's chunks with the receiver of this.
struct SwarmMember {
  ClientId client;
  PublicKey key{};
  std::string address;  // "host:port"; empty: it accepts no links
  bool operator==(const SwarmMember&) const = default;
};

// Whom the receiver exchanges this object's chunks with, besides the sender: these as well, those no more.
struct SwarmMembers {
  ObjectId object{};
  std::vector<SwarmMember> join;  // at most kMaxSwarmMembers, likewise
  std::vector<ClientId> leave;
};

// Of a run without a server: an update of the round, to be exchanged with the members of the round's model.
struct ServerlessUpdate {
  RunId run;
  RoundNumber round;
  TrackId track;
  Manifest update;  // of somebody who takes part; it is not said whose

  TaskId task() const { return {round, track}; }
};

// The sender has all of a shared update and has looked at every value.
struct UpdateHeld {
  RunId run;
  RoundNumber round;
  TrackId track;
  ObjectId object{};
  bool sound = true;                     // it can be aggregated
  ErrorCode code = ErrorCode::kInvalid;  // only if not sound
  std::string reason;                    // only if not sound

  TaskId task() const { return {round, track}; }
};

// Aggregate these of the round's shared updates, and no others.
struct AggregateUpdates {
  struct Part {
    ObjectId object{};
    SampleCount weight;
    std::uint64_t steps = 1;  // at least 1
    double factor = 1;        // its values count this many times; finite, not negative
    bool operator==(const Part&) const = default;
  };
  RunId run;
  RoundNumber round;
  TrackId track;
  std::vector<Part> parts;  // 1 to kMaxAggregated, ascending by object

  TaskId task() const { return {round, track}; }
};

// The model that the sender has made of them; it exchanges it from now on.
struct AggregateMade {
  RunId run;
  RoundNumber round;
  TrackId track;
  Manifest model;

  TaskId task() const { return {round, track}; }
};

// Between peers: all that the sender has of the object, if the receiver exchanges it too.
struct ChunksHeld {
  ObjectId object{};
  std::vector<std::byte> bits;    // chunk i is bit i % 8 of byte i / 8; at most kMaxChunks of them
  std::vector<std::byte> wanted;  // likewise what it wants to have in the end; empty: all
};

// And what it has got since.
struct ChunksAdded {
  ObjectId object{};
  std::vector<std::uint32_t> chunks;  // 1 to kMaxOutstandingChunks
};

// How the sender stands to the receiver, on this link.
struct SwarmState {
  bool choking = true;      // it answers no request of the receiver's
  bool interested = false;  // the receiver has chunks that it wants
};

// The receiver need not send this chunk any more: it answers with a refusal, unless it is on its way.
struct ChunkCancelled {
  ObjectId object{};
  std::uint32_t chunk = 0;
};

}  // namespace fedge::protocol
