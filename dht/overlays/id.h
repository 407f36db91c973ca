// Ids of overlays: 64 bits, interpreted as a ring (Chord), as digits (Pastry) or in the XOR metric
// (Kademlia). A Contact is an address and the id that the node there claims; a hostile node may claim any.
// Pure functions, for any thread; each is a few instructions. Sources: Stoica et al. 2001, section 4;
// Rowstron and Druschel 2001, section 2; Maymounkov and Mazieres 2002, section 2.1.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace fedge::dht {

using Id = std::uint64_t;
using Address = std::uint32_t;  // the index of a node in its network
inline constexpr std::size_t kIdBits = 64;
inline constexpr Address kNobody = ~Address{0};

struct Contact {
  Id id = 0;
  Address address = kNobody;
  bool known() const { return address != kNobody; }
  bool operator==(const Contact&) const = default;
};

inline bool contains(const std::vector<Contact>& contacts, Address address) {
  return std::any_of(contacts.begin(), contacts.end(),
                     [&](const Contact& contact) { return contact.address == address; });
}

// Verifiable facts about nodes: the id that a node can prove, and the group of its address.
struct Identities {
  std::vector<Id> ids;                // by address
  std::vector<std::uint32_t> groups;  // by address; empty: a group for each address

  bool genuine(const Contact& contact) const {
    return contact.address < ids.size() && ids[contact.address] == contact.id;
  }
  std::uint32_t group(Address address) const { return address < groups.size() ? groups[address] : address; }
};

// The key for a name: the first 8 bytes of its SHA-256.
Id key_of(std::string_view name);

// Distance from `from` to `to` in ascending direction, with wrap-around.
constexpr Id clockwise(Id from, Id to) { return to - from; }
// Intervals of the ring, clockwise. (a, a] is everything; (a, a) is everything but a.
constexpr bool in_open_closed(Id x, Id from, Id to) { return x - from - 1 <= to - from - 1; }
constexpr bool in_open(Id x, Id from, Id to) { return x - from - 1 < to - from - 1; }

// Distance in the shorter direction.
constexpr Id ring_distance(Id a, Id b) { return std::min(a - b, b - a); }

// Digits of `bits` bits, the first being the most significant. `bits` must divide 64.
constexpr std::size_t shared_prefix(Id a, Id b, unsigned bits) {
  return static_cast<std::size_t>(std::countl_zero(a ^ b)) / bits;
}
constexpr std::size_t digit(Id id, std::size_t row, unsigned bits) {
  const auto shift = kIdBits - bits * (row + 1);
  return static_cast<std::size_t>((id >> shift) & ((Id{1} << bits) - 1));
}

constexpr Id xor_distance(Id a, Id b) { return a ^ b; }
// floor(log2) of a distance above 0: the number of its k-bucket or finger.
constexpr unsigned magnitude(Id distance) {
  return static_cast<unsigned>(kIdBits - 1) - static_cast<unsigned>(std::countl_zero(distance));
}

}  // namespace fedge::dht
