// Message: a message between overlay nodes, and its accounted size: 40 bytes of header, 26 a contact (20 of
// id, 4 of address, 2 of port, as in the protocols' 160-bit form), and values with their bytes. One struct
// for all kinds, so that messages come from one pool and keep their memory.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/time.h"
#include "dht/overlays/id.h"

namespace fedge::dht {

inline constexpr std::size_t kHeaderBytes = 40;
inline constexpr std::size_t kContactBytes = 26;
inline constexpr std::size_t kValueHeaderBytes = 24;  // slot, sequence, expiry

// Why a message is sent; a reply has the purpose of its request.
enum class Purpose : std::uint8_t { kJoin, kMaintenance, kLookup, kPublish, kRepair };
inline constexpr std::size_t kPurposes = 5;

enum class Kind : std::uint8_t {
  kFind,        // nodes closer to the key; with want_values also its values
  kPing,        // checks that the node is alive
  kNeighbours,  // Chord: predecessor and successors; Pastry: the leaf set
  kRow,         // Pastry: row `key` of the routing table
  kStore,       // asks to store these values
  kRoute,       // recursive: forward to the responsible node, which answers `origin` (kRouted)
  kRouted,      // one way: the answer to kRoute
  kNotify,      // one way. Chord: the sender may be your predecessor; Pastry: the sender has joined
  kHint,        // one way. Chord: a node between sender and receiver
  kLeave,       // one way: the sender leaves
};

// Meaning of the contacts in a reply to kFind.
enum class Found : std::uint8_t {
  kCloser,       // nodes nearer to the key, best first
  kOwners,       // the responsible nodes, owner first; the sender is not the owner
  kResponsible,  // the sender is the owner; the holders, sender first
};

// A value under a key. A key may have several values, distinguished by `slot` (such as a publisher's name).
struct Value {
  Id key = 0;
  std::uint64_t slot = 0;
  std::uint64_t sequence = 0;
  Time expires{};
  std::shared_ptr<const std::vector<std::byte>> bytes;
  std::size_t size() const { return bytes ? bytes->size() : 0; }
};
// Equal except for the expiry.
inline bool same(const Value& a, const Value& b) {
  if (a.key != b.key || a.slot != b.slot || a.sequence != b.sequence) return false;
  return a.bytes == b.bytes || (a.bytes && b.bytes && *a.bytes == *b.bytes);
}

struct MessageHead {
  Contact from;
  Contact to;
  Contact origin;  // kRoute: receiver of the answer
  Id key = 0;
  std::uint64_t token = 0;  // issued by the receiver to the sender's address; with `retry`, by the sender
  Time deadline{};          // of a request: when its sender stops waiting
  std::uint32_t rpc = 0;    // the requester's number of the request; 0: one way
  std::uint16_t hops = 0;   // kRoute: hops so far; kFind of a join: index of the join's contact
  std::uint16_t routed =
      0;  // reply to kFind: number of contacts that are its answer; the others are for the tables
  Kind kind = Kind::kPing;
  Purpose purpose = Purpose::kMaintenance;
  Found found = Found::kCloser;
  bool reply = false;
  bool one_way = false;
  bool want_values = false;
  bool want_tables = false;  // kFind of a Pastry join: add the row that the newcomer needs
  bool given_up = false;     // of a request: already known to miss the deadline
  bool accepted = false;     // reply to kStore
  bool retry = false;        // reply: repeat the request with this token
  bool newcomer = false;     // the sender is not a member yet and has no state from an earlier membership
};

struct Message : MessageHead {
  std::vector<Contact> contacts;
  std::vector<Value> values;

  std::size_t bytes() const {
    std::size_t sum = kHeaderBytes + kContactBytes * contacts.size();
    for (const Value& value : values) sum += kValueHeaderBytes + value.size();
    return sum;
  }
  void prefetch() const {
    const char* first = reinterpret_cast<const char*>(contacts.data());
    for (std::size_t line = 0; line < contacts.size() * sizeof(Contact); line += 64)
      __builtin_prefetch(first + line);
  }
  // Resets the message but keeps the memory of its lists.
  void clear() {
    static_cast<MessageHead&>(*this) = {};
    contacts.clear();
    values.clear();
  }
};

// Messages and bytes by purpose.
struct Traffic {
  std::array<std::uint64_t, kPurposes> messages{};
  std::array<std::uint64_t, kPurposes> bytes{};
};

}  // namespace fedge::dht
