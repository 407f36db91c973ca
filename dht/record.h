// Record: what lies in the directory: a statement under a 32-byte key, signed by the node that makes it, with
// a number and an end. It passes through strangers' hands, so whoever reads it checks everything, and nothing
// but the bytes that were signed is ever passed on. dht/proto/directory.proto is the format.
// Pure. What opening and making one cost, signatures above all, is in bench/dht.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "core/crypto/ed25519.h"
#include "core/crypto/sha256.h"
#include "core/ids.h"
#include "core/node_record.h"
#include "core/result.h"
#include "core/time.h"
#include "protocol/chunks/manifest.h"
#include "protocol/session/endpoint.h"

namespace fedge::dht {

using Key = Digest;

inline constexpr std::uint32_t kRecordVersion = 1;
// A record with its signature: what one datagram carries in a few fragments.
inline constexpr std::size_t kMaxSignedRecord = 4352;
// How far ahead a record may end: what is forged with a stolen key dies with it, at last.
inline constexpr Duration kMaxRecordLifetime = std::chrono::hours{24};
inline constexpr std::size_t kMaxAddresses = 4;
inline constexpr std::size_t kMaxListedPeers = 16;

// How to reach a coordinator, whose key is the signer's. Under the coordinator's own key (`run_name` empty),
// or under a run's name.
struct Announcement {
  std::vector<protocol::Address> addresses;  // 1 to kMaxAddresses, to be tried in this order
  std::string run_name;
  RunId run;
  bool operator==(const Announcement&) const = default;
};

// What a client says about itself, for one run.
struct NodeStatus {
  RunId run;
  NodeRecord record;  // its sequence is the directory record's
  bool operator==(const NodeStatus&) const = default;
};

// Where the model of a run's track is now: the manifest to ask the signer, or others, for.
struct ModelPointer {
  RunId run;
  TrackId track;
  RoundNumber round;
  protocol::ObjectId manifest{};
  Bytes size;
  bool operator==(const ModelPointer&) const = default;
};

// Who has an object, as far as the signer knows; 1 to kMaxListedPeers.
struct PeerList {
  struct Peer {
    protocol::Address address;
    PublicKey key;
    bool operator==(const Peer&) const = default;
  };
  protocol::ObjectId object{};
  std::vector<Peer> peers;
  bool operator==(const PeerList&) const = default;
};

using Content = std::variant<Announcement, NodeStatus, ModelPointer, PeerList>;
// "coordinator", "node", "model", "peers".
const char* name_of(const Content& content);

// Where records lie. Those under the first three keys can be made by the node named in them alone, so that
// nobody else's can crowd them out; under the other two anybody's can lie, and the reader chooses by signer.
Key coordinator_key(const PublicKey& coordinator);
Key node_key(const PublicKey& node, RunId run);
Key model_key(const PublicKey& coordinator, RunId run, TrackId track);
Key run_key(const std::string& run_name);
Key peers_key(const protocol::ObjectId& object);
// The one of these that a content of this signer lies under.
Key key_of(const Content& content, const PublicKey& signer);

struct Record {
  Key key{};
  PublicKey signer;
  std::uint64_t sequence = 0;  // of one signer's records under one key the one with the largest counts
  Time expires{};  // on the calendar: since 1970, in whole milliseconds; from then on it does not count
  Content content;
  std::vector<std::byte> bytes;  // signed, as they travel
  bool operator==(const Record&) const = default;
};

struct RecordTerms {
  std::uint64_t sequence = 0;
  Time expires{};
};

// Signs a statement; its key follows from it. kInvalid: what open_record() would not take; the message names
// the field.
Result<Record> make_record(const SecretKey& signer, const RecordTerms& terms, Content content);

// Why bytes from a stranger are no record. Each is counted by itself (RecordGuard).
enum class Flaw {
  kOversized,    // more than kMaxSignedRecord
  kMalformed,    // not the format, another version, or a field out of its bounds
  kForged,       // the signature is not the signer's
  kMisplaced,    // signed for another key than the one it was found under, or not the signer's to write there
  kExpired,      // its time is over
  kFarFetched,   // it would last longer than kMaxRecordLifetime
  kRolledBack,   // the latest there is is earlier than one that has been seen
  kConflicting,  // the same with another one of the same number
};
inline constexpr std::size_t kFlaws = 8;
const char* to_string(Flaw flaw);  // "rolled back"

// Whether a record that ends then is within its time now. What lasts longer than kMaxRecordLifetime is not:
// it was made or seen by a clock that was ahead, and is forgotten like one that has ended.
constexpr bool in_time(Time expires, Time now) {
  return expires > now && expires - now <= kMaxRecordLifetime;
}

struct Refusal {
  Flaw flaw = Flaw::kMalformed;
  std::string reason;
};
using Opened = std::variant<Record, Refusal>;

// The record that these bytes, found under this key, are at this time; kRolledBack and kConflicting are for
// those who remember (RecordGuard).
Opened open_record(const Key& key, std::span<const std::byte> bytes, Time now);

// What bytes say of themselves, unchecked: for who keeps records without having asked for them. Nothing if
// they are not even a record's form.
struct Claim {
  Key key{};
  PublicKey signer;
  std::uint64_t sequence = 0;
};
std::optional<Claim> read_claim(std::span<const std::byte> bytes);

}  // namespace fedge::dht
