// Message: what nodes of an overlay send each other, and its size as it is charged: 40 bytes of header, 26 a
// contact (20 of id, 4 of address, 2 of port, as in the protocols' own 160-bit form), and values with their
// bytes. One struct for all kinds, so that messages come from one pool and keep their memory.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/time.h"
#include "sim/overlays/id.h"

namespace fedge::sim {

inline constexpr std::size_t kHeaderBytes = 40;
inline constexpr std::size_t kContactBytes = 26;
inline constexpr std::size_t kValueHeaderBytes = 24;  // slot, sequence, expiry

// Why a message is sent; a reply has its request's.
enum class Purpose : std::uint8_t { kJoin, kMaintenance, kLookup, kPublish, kRepair };
inline constexpr std::size_t kPurposes = 5;

enum class Kind : std::uint8_t {
  kFind,        // who is closer to the key; with want_values: and what lies under it
  kPing,        // are you there
  kNeighbours,  // Chord: predecessor and successors; Pastry: the leaf set
  kRow,         // Pastry: row `key` of the routing table
  kStore,       // keep these values
  kRoute,       // recursive: pass on to whoever is responsible, who answers `origin` (kRouted)
  kRouted,      // one way: that answer
  kNotify,      // one way. Chord: I think I am your predecessor; Pastry: I have come
  kHint,        // one way. Chord: between us two there is this one
  kLeave,       // one way: I go
};

// What a reply to kFind says of its contacts.
enum class Found : std::uint8_t {
  kCloser,       // ask these: they are nearer to the key; the best first
  kOwners,       // these are responsible, the owner first; I am not the owner
  kResponsible,  // I am the owner; these are the holders, I first
};

// What lies under a key. Several values may, told apart by `slot`: a publisher's name, for example.
struct Value {
  Id key = 0;
  std::uint64_t slot = 0;
  std::uint64_t sequence = 0;
  Time expires{};
  std::shared_ptr<const std::vector<std::byte>> bytes;
  std::size_t size() const { return bytes ? bytes->size() : 0; }
};
// In all but when they end.
inline bool same(const Value& a, const Value& b) {
  if (a.key != b.key || a.slot != b.slot || a.sequence != b.sequence) return false;
  return a.bytes == b.bytes || (a.bytes && b.bytes && *a.bytes == *b.bytes);
}

struct MessageHead {
  Contact from;
  Contact to;
  Contact origin;  // kRoute: who gets the answer
  Id key = 0;
  std::uint64_t token = 0;  // that the receiver has given to the sender's address, or gives with `retry`
  Time deadline{};          // of a request: when its sender gives up
  std::uint32_t rpc = 0;    // the requester's number of it; 0: one way
  std::uint16_t hops = 0;   // kRoute: how far it has come; kFind of a join: which contact of the join this is
  std::uint16_t routed =
      0;  // reply to kFind: so many of the contacts are its answer, the others for the tables
  Kind kind = Kind::kPing;
  Purpose purpose = Purpose::kMaintenance;
  Found found = Found::kCloser;
  bool reply = false;
  bool one_way = false;
  bool want_values = false;
  bool want_tables = false;  // kFind of a Pastry join: add the row that the newcomer needs
  bool given_up = false;     // of a request: the deadline is known to be missed
  bool accepted = false;     // reply to kStore
  bool retry = false;        // reply: ask again, with this token
  bool newcomer = false;     // its sender is no member yet, and has forgotten all that it knew as one
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
  // As new, but for the memory of its lists.
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

}  // namespace fedge::sim
