// Record: a statement in the directory under a 32-byte key, signed by its author, with a sequence number
// and an expiry time. It passes through untrusted nodes, so readers check everything, and only signed bytes
// are passed on. dht/proto/directory.proto defines the format. Pure. bench/dht measures the cost, which is
// mostly signatures.
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
// Limit for a record with its signature: fits one datagram in a few fragments.
inline constexpr std::size_t kMaxSignedRecord = 4352;
// Longest time until a record expires; limits how long a record forged with a stolen key can last.
inline constexpr Duration kMaxRecordLifetime = std::chrono::hours{24};
inline constexpr std::size_t kMaxAddresses = 4;
inline constexpr std::size_t kMaxListedPeers = 16;

// The addresses of a coordinator, which is the signer. Stored under the coordinator's own key (`run_name`
// empty) or under a run's name.
struct Announcement {
  std::vector<protocol::Address> addresses;  // 1 to kMaxAddresses, in the order to try
  std::string run_name;
  RunId run;
  bool operator==(const Announcement&) const = default;
};

// A client's status for one run.
struct NodeStatus {
  RunId run;
  NodeRecord record;  // its sequence is that of the directory record
  bool operator==(const NodeStatus&) const = default;
};

// The current model of a run's track: the manifest to fetch from the signer or others.
struct ModelPointer {
  RunId run;
  TrackId track;
  RoundNumber round;
  protocol::ObjectId manifest{};
  Bytes size;
  bool operator==(const ModelPointer&) const = default;
};

// Nodes that have an object, as far as the signer knows; 1 to kMaxListedPeers.
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

// The keys of records. Under the first three only the node named in the key can publish, so that others
// cannot crowd it out. Under the other two anybody can publish, and the reader chooses by signer.
Key coordinator_key(const PublicKey& coordinator);
Key node_key(const PublicKey& node, RunId run);
Key model_key(const PublicKey& coordinator, RunId run, TrackId track);
Key run_key(const std::string& run_name);
Key peers_key(const protocol::ObjectId& object);
// The key that belongs to this content of this signer.
Key key_of(const Content& content, const PublicKey& signer);

struct Record {
  Key key{};
  PublicKey signer;
  std::uint64_t sequence = 0;  // for one signer and key, the largest counts
  Time expires{};              // calendar time: since 1970, in whole milliseconds
  Content content;
  std::vector<std::byte> bytes;  // the signed bytes, as sent
  bool operator==(const Record&) const = default;
};

struct RecordTerms {
  std::uint64_t sequence = 0;
  Time expires{};
};

// Signs a statement; its key follows from it. kInvalid: open_record() would refuse it; the message names
// the field.
Result<Record> make_record(const SecretKey& signer, const RecordTerms& terms, Content content);

// Why a stranger's bytes are not a valid record. RecordGuard counts each separately.
enum class Flaw {
  kOversized,    // more than kMaxSignedRecord
  kMalformed,    // wrong format or version, or a field out of range
  kForged,       // the signature is not valid for the signer's key
  kMisplaced,    // signed for another key, or the signer may not publish under this one
  kExpired,      // its expiry time has passed
  kFarFetched,   // expires later than kMaxRecordLifetime from now
  kRolledBack,   // older than a record seen before
  kConflicting,  // different from a record seen before with the same number
};
inline constexpr std::size_t kFlaws = 8;
const char* to_string(Flaw flaw);  // "rolled back"

// Whether a record with this expiry time counts now. One that lasts longer than kMaxRecordLifetime does
// not: it comes from a fast clock, and is dropped like an expired one.
constexpr bool in_time(Time expires, Time now) {
  return expires > now && expires - now <= kMaxRecordLifetime;
}

struct Refusal {
  Flaw flaw = Flaw::kMalformed;
  std::string reason;
};
using Opened = std::variant<Record, Refusal>;

// Checks bytes found under this key at this time and returns their record. kRolledBack and kConflicting
// need memory of earlier records, which RecordGuard has.
Opened open_record(const Key& key, std::span<const std::byte> bytes, Time now);

// The unchecked fields of a record, for nodes that store records of others. Nothing if the bytes do not
// have the form of a record.
struct Claim {
  Key key{};
  PublicKey signer;
  std::uint64_t sequence = 0;
};
std::optional<Claim> read_claim(std::span<const std::byte> bytes);

}  // namespace fedge::dht
