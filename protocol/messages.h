// The control messages of fedge.v1 as validated C++ values: what roles exchange, on a wire or in a
// simulator. protocol/codec.h turns them into protobuf bytes and back; a decoded message satisfies
// every bound stated here, so that roles need not check again.
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
  std::string token;     // join secret; empty once enrolled
  // Where other clients may connect: "host:port", or ":port" of the host that the coordinator sees. Empty:
  // nowhere.
  std::string listens = {};
};

// The accepting side's answer: who the peer is to it, and which version both speak from now on.
struct Welcome {
  std::uint32_t version = kProtocolVersion;
  std::vector<std::string> features;
  std::string software;
  ClientId client;
  bool pending = false;  // to a Hello with a token: enrolled, but an operator has yet to approve
  // That have begun and not ended (also those that are paused), ascending, at most kMaxRunsInProgress: what a
  // client keeps of any other is of no use. Empty to a Hello with a token.
  std::vector<RunId> runs = {};
  // If the connection ends without a Goodbye: the first try comes at a moment drawn from (0, this], at most
  // kMaxRetryAfter. 0: as the client likes.
  Duration spread = {};
};

// Why the connection is about to be closed by the sender.
struct Goodbye {
  ErrorCode code = ErrorCode::kRefused;
  std::string reason;
  // When there is room again: come back at a moment drawn uniformly from [this, 2 * this], at most
  // kMaxRetryAfter. 0: not said.
  Duration retry_after = {};
};

// A run the client takes part in: what it needs to build data, model and trainer.
struct RunDescription {
  RunId run;
  std::string name;
  std::uint64_t seed = 0;
  std::string task;  // canonical TOML of [data], [model], [training]
  Digest layout{};   // hash of the model's layout, for an early mismatch error
};

// The answer to RunDescription: whether data, model and trainer are there.
struct RunAnswer {
  RunId run;
  bool ready = false;
  SampleCount samples;                   // of its training data; only if ready, then at least 1
  ErrorCode code = ErrorCode::kInvalid;  // only if not ready
  std::string reason;                    // only if not ready
  double capability = 1;                 // share of a model that it can train, in (0, 1]
};

// Train from this model and offer the update.
struct TrainRequest {
  RunId run;
  RoundNumber round;                // names the task for this client
  Manifest model;                   // what to fetch; plain float32
  Coverage coverage;                // which parameters to train and send
  Duration time_left{};             // until the update is no longer waited for, on the sender's clock
  RoundNumber last_round;           // the client's last task whose update was accepted, 0 for none
  std::optional<Manifest> control;  // SCAFFOLD: the server's control variate, to be fetched as well
  TrackId track;                    // whose model it is; what the client remembers is kept apart for each
  double data_share = 1;            // of its samples, to be trained on, in (0, 1]
  // All that the run has, ascending, at most kMaxLiveTracks; what is remembered of others is of no use.
  // Empty: not said.
  std::vector<TrackId> live_tracks = {};
  // Asked for before, perhaps with another model: who has the task in hand goes on with it.
  bool again = false;
  // The model is not fetched from the sender alone: its chunks are exchanged with the members of its swarm.
  bool swarm = false;
  // The update is masked, in this attempt at the round's secure sum (SecureSession), from 1 on; 0: it is not.
  std::uint32_t secure_attempt = 0;

  TaskId task() const { return {round, track}; }
};

// The client's update is ready to be fetched.
struct UpdateOffer {
  RunId run;
  RoundNumber round;
  Manifest update;      // delta over its coverage, in any codec
  SampleCount samples;  // weight
  std::uint64_t steps = 0;
  double train_loss = 0;  // finite
  double norm = 0;        // Euclidean, of the update before it was encoded; finite, not negative
  double loss_rms = 0;    // root of the mean squared loss of the samples seen; finite, not negative
  TrackId track;
  double wanted_share = 0;  // in (0, 1]: at most this much from the next task on; 0: nothing is asked for
  // Of a masked update, whose samples are then 1 and whose figures 0: masked themselves, modulo 2^64
  // (docs/PROTOCOL.md). At most kMaxSecureScalars.
  std::vector<std::uint64_t> masked_scalars = {};
  TaskId task() const { return {round, track}; }
};

// The client cannot deliver this round.
struct TaskFailed {
  RunId run;
  RoundNumber round;
  ErrorCode code = ErrorCode::kInvalid;
  std::string reason;
  TrackId track;

  TaskId task() const { return {round, track}; }
};

// What became of an offered update; accepted means that it is in the round's aggregate.
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

// The run is over; the client may stay connected and wait for another.
struct RunEnded {
  RunId run;
  std::string reason;
};

// What the client says about itself, for the coordinator's directory, under the client's own key.
struct PublishRecord {
  RunId run;
  RoundNumber round;  // of the task it saw last, 0 for none; of two records the later is kept, by round,
  std::uint64_t sequence = 0;    // then by this
  std::vector<std::byte> value;  // 1 to kMaxRecordBytes; dht/node_record.h
};

// One of them. To copy, move and destroy one is compiled once, not in every source that holds one.
struct Message : std::variant<Hello, Welcome, Goodbye, RunDescription, TrainRequest, UpdateOffer, TaskFailed,
                              UpdateVerdict, CancelTask, RunEnded, RunAnswer, PublishRecord, SwarmMembers,
                              ServerlessUpdate, UpdateHeld, AggregateUpdates, AggregateMade, WarmupPlan,
                              WarmupSlot, WarmupOver, SealedChunk, ChunksHeld, ChunksAdded, SwarmState,
                              ChunkCancelled, SecureKeys, SecureRoster, SecureShares, SecurePeerShares,
                              SecureSurvivors, SecureConsent, SecureConsents, SecureUnmask> {
  using variant::variant;
  Message();  // a Hello
  Message(const Message&);
  Message(Message&&) noexcept;
  Message& operator=(const Message&);
  Message& operator=(Message&&) noexcept;
  ~Message();
};

// "train_request" and so on, for logs.
const char* name_of(const Message& message);

}  // namespace fedge::protocol
