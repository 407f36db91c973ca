// The control messages of fedge.v1 as validated C++ values, used on the wire and in the simulator.
// protocol/codec.h converts them to and from protobuf. A decoded message satisfies every bound stated here,
// so receivers need not check again.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/crypto/ed25519.h"
#include "core/ids.h"
#include "core/result.h"
#include "core/time.h"
#include "protocol/chunks/manifest.h"
#include "protocol/secure_messages.h"
#include "protocol/swarm_messages.h"
#include "protocol/warmup_messages.h"

namespace fedge::protocol {

inline constexpr std::uint32_t kProtocolVersion = 1;

// First message of the connecting side.
struct Hello {
  std::uint32_t min_version = kProtocolVersion;
  std::uint32_t max_version = kProtocolVersion;
  std::vector<std::string> features;
  std::string software;  // "fedge-client 0.1.0"
  std::string token;     // join secret; empty for an enrolled client
  // Where other clients may connect: "host:port", or ":port" at the host that the coordinator sees. Empty:
  // they cannot.
  std::string listens = {};
};

// The accepting side's answer: the client's number and the protocol version to use.
struct Welcome {
  std::uint32_t version = kProtocolVersion;
  std::vector<std::string> features;
  std::string software;
  ClientId client;
  bool pending = false;  // only after a Hello with a token: enrolled, but an operator must still approve
  // Runs that have begun and not ended, also paused ones; ascending, at most kMaxRunsInProgress. A client
  // may delete its data of all other runs. Empty after a Hello with a token.
  std::vector<RunId> runs = {};
  // After a disconnect without a Goodbye: first retry at a random time in (0, spread], at most
  // kMaxRetryAfter. 0: the client decides.
  Duration spread = {};
};

// The reason why the sender is about to close the connection.
struct Goodbye {
  ErrorCode code = ErrorCode::kRefused;
  std::string reason;
  // When to come back: at a random time, uniform in [retry_after, 2 * retry_after], at most kMaxRetryAfter.
  // 0: unspecified.
  Duration retry_after = {};
};

// A run in which the client takes part: what it needs to build data, model and trainer.
struct RunDescription {
  RunId run;
  std::string name;
  std::uint64_t seed = 0;
  std::string task;  // canonical TOML of what clients need of the run file; serverless runs: all of it
  Digest layout{};   // hash of the model's layout, to detect a mismatch early
};

// The answer to RunDescription: whether data, model and trainer are ready.
struct RunAnswer {
  RunId run;
  bool ready = false;
  SampleCount samples;                   // training samples, at least 1; only if ready
  ErrorCode code = ErrorCode::kInvalid;  // only if not ready
  std::string reason;                    // only if not ready
  double capability = 1;                 // fraction of a model that it can train, in (0, 1]
};

// The task: train from this model and offer the update.
struct TrainRequest {
  RunId run;
  RoundNumber round;                // names the task, together with `track`
  Manifest model;                   // the model to fetch; plain float32
  Coverage coverage;                // which parameters to train and send
  Duration time_left{};             // until the coordinator stops waiting for the update, on its clock
  RoundNumber last_round;           // the client's last task whose update was accepted, 0 for none
  std::optional<Manifest> control;  // SCAFFOLD: the server's control variate, to fetch as well
  TrackId track;                    // the model's track; the client keeps a separate memory for each
  double data_share = 1;            // fraction of its samples to train on, in (0, 1]
  // The run's live tracks, ascending, at most kMaxLiveTracks; the client may forget others. Empty:
  // unspecified.
  std::vector<TrackId> live_tracks = {};
  // The task was assigned before, perhaps with another model: a client that has the task continues it.
  bool again = false;
  // Exchange the model's chunks with the members of its swarm, instead of fetching them from the sender
  // only.
  bool swarm = false;
  // Mask the update, in this attempt (from 1) at the round's secure sum (SecureSession); 0: unmasked.
  std::uint32_t secure_attempt = 0;

  TaskId task() const { return {round, track}; }
};

// Offers a finished update; the coordinator may fetch it.
struct UpdateOffer {
  RunId run;
  RoundNumber round;
  Manifest update;      // delta over its coverage, in any codec
  SampleCount samples;  // weight
  std::uint64_t steps = 0;
  double train_loss = 0;  // finite
  double norm = 0;        // Euclidean, before encoding; finite, not negative
  double loss_rms = 0;    // root mean square of the samples' loss; finite, not negative
  TrackId track;
  double wanted_share = 0;  // largest fraction of adapter ranks wanted next, in (0, 1]; 0: no wish
  // Sample count and metrics of a masked update, masked modulo 2^64 (docs/PROTOCOL.md); `samples` is then 1
  // and the metrics are 0. At most kMaxSecureScalars.
  std::vector<std::uint64_t> masked_scalars = {};
  TaskId task() const { return {round, track}; }
};

// The client cannot deliver an update for this task.
struct TaskFailed {
  RunId run;
  RoundNumber round;
  ErrorCode code = ErrorCode::kInvalid;
  std::string reason;
  TrackId track;

  TaskId task() const { return {round, track}; }
};

// The verdict on an offered update; accepted means that it is in the round's aggregate.
struct UpdateVerdict {
  RunId run;
  RoundNumber round;
  bool accepted = false;
  ErrorCode code = ErrorCode::kInvalid;  // only if refused
  std::string reason;                    // only if refused
  TrackId track;

  TaskId task() const { return {round, track}; }
};

// Stop working on this task.
struct CancelTask {
  RunId run;
  RoundNumber round;
  std::string reason;
  TrackId track;

  TaskId task() const { return {round, track}; }
};

// The run has ended; the client may stay connected and wait for another.
struct RunEnded {
  RunId run;
  std::string reason;
};

// A client's status record for the coordinator's directory, under the client's own key.
struct PublishRecord {
  RunId run;
  RoundNumber round;  // its last task, 0: none; the record with the larger (round, sequence) is kept
  std::uint64_t sequence = 0;
  std::vector<std::byte> value;  // 1 to kMaxRecordBytes; dht/node_record.h
};

// One of the messages. Its copy, move and destruction are compiled once, to save compile time.
struct Message : std::variant<Hello, Welcome, Goodbye, RunDescription, TrainRequest, UpdateOffer, TaskFailed,
                              UpdateVerdict, CancelTask, RunEnded, RunAnswer, PublishRecord, SwarmMembers,
                              ServerlessUpdate, UpdateHeld, AggregateUpdates, AggregateMade, WarmupPlan,
                              WarmupSlot, WarmupOver, SealedChunk, ChunksHeld, ChunksAdded, SwarmState,
                              ChunkCancelled, SecureKeys, SecureRoster, SecureShares, SecurePeerShares,
                              SecureSurvivors, SecureConsent, SecureConsents, SecureUnmask> {
  using variant::variant;
  Message();  // holds a Hello
  Message(const Message&);
  Message(Message&&) noexcept;
  Message& operator=(const Message&);
  Message& operator=(Message&&) noexcept;
  ~Message();
};

// "train_request" etc., for logs.
const char* name_of(const Message& message);

}  // namespace fedge::protocol
