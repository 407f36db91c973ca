// The control messages of fedge.v1 as validated C++ values, used on the wire and in the simulator.
// protocol/codec.h converts them to and from protobuf. A decoded message satisfies every bound stated here,
// so receivers need not check again.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/crypto/ed25519.h"
#include "core/energy/power.h"
#include "core/ids.h"
#include "core/result.h"
#include "core/time.h"
#include "protocol/frame.h"
#include "protocol/secure_messages.h"
#include "protocol/split_messages.h"
#include "protocol/swarm_messages.h"
#include "protocol/task_messages.h"
#include "protocol/warmup_messages.h"

namespace fedge::protocol {

inline constexpr std::uint32_t kProtocolVersion = 1;

// A name in Hello's features: the sender understands Contact.
inline constexpr const char* kContactFeature = "contact";

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
  std::string platform = {};  // "Linux aarch64"; empty: not told
  bool operator==(const Hello&) const = default;
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
  bool operator==(const Welcome&) const = default;
};

// The reason why the sender is about to close the connection.
struct Goodbye {
  ErrorCode code = ErrorCode::kRefused;
  std::string reason;
  // When to come back: at a random time, uniform in [retry_after, 2 * retry_after], at most kMaxRetryAfter.
  // 0: unspecified.
  Duration retry_after = {};
  bool operator==(const Goodbye&) const = default;
};

// How clients reach the coordinator from now on: after each Welcome to an enrolled client, and whenever it
// changes.
struct Contact {
  // Addresses at which the coordinator can be reached, at most kMaxCoordinatorAddresses. None: the client
  // keeps those that it has.
  std::vector<std::string> addresses = {};
  // The key that will replace the coordinator's present one. Nothing: none is announced, or no longer.
  std::optional<PublicKey> next_key = {};
  bool operator==(const Contact&) const = default;
};

// The answer to a Contact with a next key, once the client has stored it.
struct ContactKept {
  PublicKey next_key{};
  bool operator==(const ContactKept&) const = default;
};

// A run in which the client takes part: what it needs to build data, model and trainer.
struct RunDescription {
  RunId run;
  std::string name;
  std::uint64_t seed = 0;
  std::string task;  // canonical TOML of what clients need of the run file; serverless runs: all of it
  Digest layout{};   // hash of the model's layout, to detect a mismatch early
  bool operator==(const RunDescription&) const = default;
};

// The answer to RunDescription: whether data, model and trainer are ready.
struct RunAnswer {
  RunId run;
  bool ready = false;
  SampleCount samples;                    // training samples; 0: it only evaluates; only if ready
  ErrorCode code = ErrorCode::kInvalid;   // only if not ready
  std::string reason;                     // only if not ready
  double capability = 1;                  // fraction of a model that it can train, in (0, 1]
  SampleCount evaluation_samples = {};    // samples on which it evaluates models; 0: it evaluates none
  std::optional<DevicePower> power = {};  // the energy of its work, if it is known
  bool operator==(const RunAnswer&) const = default;
};

// The run has ended; the client may stay connected and wait for another.
struct RunEnded {
  RunId run;
  std::string reason;
  bool operator==(const RunEnded&) const = default;
};

// The client asks for a part of the run's tokenizer, which is too long for RunDescription::task
// (data.tokenizer.table_hash).
struct TokenizerRequest {
  RunId run;
  std::uint32_t offset = 0;  // of the first byte
  bool operator==(const TokenizerRequest&) const = default;
};

// The answer: the bytes from the offset on, kMaxTokenizerPart of them or those that are left.
struct TokenizerPart {
  RunId run;
  std::uint32_t total = 0;   // bytes of the whole tokenizer, 1 to kMaxTokenizer
  std::uint32_t offset = 0;  // below total
  std::string bytes;         // 1 to kMaxTokenizerPart
  bool operator==(const TokenizerPart&) const = default;
};

// A client's status record for the coordinator's directory, under the client's own key.
struct PublishRecord {
  RunId run;
  RoundNumber round;  // its last task, 0: none; the record with the larger (round, sequence) is kept
  std::uint64_t sequence = 0;
  std::vector<std::byte> value;  // 1 to kMaxRecordBytes; dht/node_record.h
  bool operator==(const PublishRecord&) const = default;
};

// T is the content of frames with this number.
template <class T>
struct MessageRow : FrameType {
  constexpr MessageRow(std::uint16_t number, const char* label, Sender from, bool early = false)
      : FrameType{MessageType{number}, label, from, early} {}
};
inline constexpr bool kGreeting = true;

template <class... T>
struct MessageTable : MessageRow<T>... {
  using Content = std::variant<T...>;
  constexpr std::array<FrameType, sizeof...(T)> rows() const {
    return {static_cast<const MessageRow<T>&>(*this)...};
  }
};
template <class... T>
MessageTable(MessageRow<T>...) -> MessageTable<T...>;

// All messages, ascending by number. Everything else about them follows from this table: a message without a
// row, or without a conversion to and from protobuf, does not compile.
inline constexpr MessageTable kMessages{
    MessageRow<Hello>{1, "hello", Sender::kConnectingSide, kGreeting},
    MessageRow<Welcome>{2, "welcome", Sender::kAcceptingSide, kGreeting},
    MessageRow<Goodbye>{3, "goodbye", Sender::kEither, kGreeting},
    MessageRow<Contact>{6, "contact", Sender::kCoordinator},
    MessageRow<ContactKept>{7, "contact_kept", Sender::kClient},
    MessageRow<RunDescription>{32, "run_description", Sender::kCoordinator},
    MessageRow<TrainRequest>{33, "train_request", Sender::kCoordinator},
    MessageRow<UpdateOffer>{34, "update_offer", Sender::kClient},
    MessageRow<TaskFailed>{35, "task_failed", Sender::kClient},
    MessageRow<UpdateVerdict>{36, "update_verdict", Sender::kCoordinator},
    MessageRow<CancelTask>{37, "cancel_task", Sender::kCoordinator},
    MessageRow<RunEnded>{38, "run_ended", Sender::kCoordinator},
    MessageRow<RunAnswer>{39, "run_answer", Sender::kClient},
    MessageRow<PublishRecord>{40, "publish_record", Sender::kClient},
    MessageRow<SwarmMembers>{41, "swarm_members", Sender::kCoordinator},
    MessageRow<ServerlessUpdate>{42, "serverless_update", Sender::kCoordinator},
    MessageRow<UpdateHeld>{43, "update_held", Sender::kClient},
    MessageRow<AggregateUpdates>{44, "aggregate_updates", Sender::kCoordinator},
    MessageRow<AggregateMade>{45, "aggregate_made", Sender::kClient},
    MessageRow<WarmupPlan>{46, "warmup_plan", Sender::kCoordinator},
    MessageRow<WarmupSlot>{47, "warmup_slot", Sender::kCoordinator},
    MessageRow<ChunksHeld>{48, "chunks_held", Sender::kEither},
    MessageRow<ChunksAdded>{49, "chunks_added", Sender::kEither},
    MessageRow<SwarmState>{50, "swarm_state", Sender::kEither},
    MessageRow<ChunkCancelled>{51, "chunk_cancelled", Sender::kEither},
    MessageRow<SealedChunk>{52, "sealed_chunk", Sender::kClient},
    MessageRow<WarmupOver>{56, "warmup_over", Sender::kCoordinator},
    MessageRow<SecureKeys>{60, "secure_keys", Sender::kClient},
    MessageRow<SecureRoster>{61, "secure_roster", Sender::kCoordinator},
    MessageRow<SecureShares>{62, "secure_shares", Sender::kClient},
    MessageRow<SecurePeerShares>{63, "secure_peer_shares", Sender::kCoordinator},
    MessageRow<SecureSurvivors>{64, "secure_survivors", Sender::kCoordinator},
    MessageRow<SecureConsent>{65, "secure_consent", Sender::kClient},
    MessageRow<SecureConsents>{66, "secure_consents", Sender::kCoordinator},
    MessageRow<SecureUnmask>{67, "secure_unmask", Sender::kClient},
    MessageRow<SplitValues>{70, "split_values", Sender::kEither},
    MessageRow<SplitTaken>{71, "split_taken", Sender::kEither},
    MessageRow<SplitEnded>{72, "split_ended", Sender::kClient},
    MessageRow<SplitKept>{73, "split_kept", Sender::kCoordinator},
    MessageRow<SplitRefused>{74, "split_refused", Sender::kCoordinator},
    MessageRow<TokenizerRequest>{75, "tokenizer_request", Sender::kClient},
    MessageRow<TokenizerPart>{76, "tokenizer_part", Sender::kCoordinator},
};

template <class T>
inline constexpr MessageType kTypeOf = static_cast<const MessageRow<T>&>(kMessages).type;

// One of the messages. Its copy, move and destruction are compiled once, to save compile time.
struct Message : decltype(kMessages)::Content {
  using variant::variant;
  Message();  // holds a Hello
  Message(const Message&);
  Message(Message&&) noexcept;
  Message& operator=(const Message&);
  Message& operator=(Message&&) noexcept;
  ~Message();
};

const FrameType& frame_type_of(const Message& message);
inline MessageType type_of(const Message& message) { return frame_type_of(message).type; }
inline const char* name_of(const Message& message) { return frame_type_of(message).name; }
// The run that the message is about; nothing if it is about none.
std::optional<RunId> run_of(const Message& message);

}  // namespace fedge::protocol
