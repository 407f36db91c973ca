// The messages about objects that clients exchange: members, messages between peers, and the updates and
// the model of serverless rounds. Part of messages.h.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/crypto/ed25519.h"
#include "core/ids.h"
#include "core/result.h"
#include "protocol/chunks/manifest.h"

namespace fedge::protocol {

// A client with which the receiver exchanges an object's chunks.
struct SwarmMember {
  ClientId client;
  PublicKey key{};
  std::string address;  // "host:port"; empty: it accepts no links
  bool operator==(const SwarmMember&) const = default;
};

// Changes the clients with which the receiver exchanges this object, besides the sender.
struct SwarmMembers {
  ObjectId object{};
  std::vector<SwarmMember> join;  // at most kMaxSwarmMembers, like `leave`
  std::vector<ClientId> leave;
  bool operator==(const SwarmMembers&) const = default;
};

// Serverless runs: an update of the round, to be exchanged with the members of the round's model.
struct ServerlessUpdate {
  RunId run;
  RoundNumber round;
  TrackId track;
  Manifest update;  // of one of the cohort's clients; the message does not say whose

  TaskId task() const { return {round, track}; }
  bool operator==(const ServerlessUpdate&) const = default;
};

// The sender has all of a round's update and has checked every value.
struct UpdateHeld {
  RunId run;
  RoundNumber round;
  TrackId track;
  ObjectId object{};
  bool sound = true;                     // whether it can be aggregated
  ErrorCode code = ErrorCode::kInvalid;  // only if not sound
  std::string reason;                    // only if not sound

  TaskId task() const { return {round, track}; }
  bool operator==(const UpdateHeld&) const = default;
};

// Aggregate exactly these updates of the round.
struct AggregateUpdates {
  struct Part {
    ObjectId object{};
    SampleCount weight;
    std::uint64_t steps = 1;  // at least 1
    double factor = 1;        // multiplies its values; finite, not negative
    bool operator==(const Part&) const = default;
  };
  RunId run;
  RoundNumber round;
  TrackId track;
  std::vector<Part> parts;  // 1 to kMaxAggregated, ascending by object

  TaskId task() const { return {round, track}; }
  bool operator==(const AggregateUpdates&) const = default;
};

// The model that the sender aggregated; the sender exchanges it from now on.
struct AggregateMade {
  RunId run;
  RoundNumber round;
  TrackId track;
  Manifest model;

  TaskId task() const { return {round, track}; }
  bool operator==(const AggregateMade&) const = default;
};

// Between peers: the chunks that the sender has of an object that both exchange.
struct ChunksHeld {
  ObjectId object{};
  std::vector<std::byte> bits;    // chunk i is bit i % 8 of byte i / 8; at most kMaxChunks
  std::vector<std::byte> wanted;  // the chunks it wants in the end, likewise; empty: all
  bool opened = false;            // the sender begins to exchange the object, perhaps anew
  bool operator==(const ChunksHeld&) const = default;
};

// The chunks added since.
struct ChunksAdded {
  ObjectId object{};
  std::vector<std::uint32_t> chunks;  // 1 to kMaxOutstandingChunks
  bool operator==(const ChunksAdded&) const = default;
};

// The sender's state towards the receiver, on this link.
struct SwarmState {
  bool choking = true;      // it answers no requests of the receiver
  bool interested = false;  // the receiver has chunks that the sender wants
  bool operator==(const SwarmState&) const = default;
};

// The receiver need not send this chunk any more. It answers with a refusal, unless it is already sending.
struct ChunkCancelled {
  ObjectId object{};
  std::uint32_t chunk = 0;
  bool operator==(const ChunkCancelled&) const = default;
};

}  // namespace fedge::protocol
