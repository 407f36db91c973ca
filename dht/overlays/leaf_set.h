// LeafSet: the numerically closest nodes, half of them on each side of the ring (Pastry; Rowstron and
// Druschel 2001, section 2.1). If the network is smaller than the set, a node is in both halves. Plain data
// with rules; one thread; every call visits all L contacts.
#pragma once

#include <cstddef>
#include <vector>

#include "dht/overlays/id.h"

namespace fedge::dht {

class LeafSet {
 public:
  LeafSet(const Contact& self, std::size_t size) : self_(self), half_(size / 2) {
    larger_.reserve(half_ + 1);
    smaller_.reserve(half_ + 1);
  }

  // True if consider() would add the contact.
  bool wants(const Contact& contact) const;
  // Adds the contact if it is close enough; returns true if it was added.
  bool consider(const Contact& contact);
  bool remove(Address address);
  void clear();
  // True if the key lies between the outermost leaves, or the halves meet and thus contain all nodes.
  bool covers(Id key) const;
  // Appends the `count` nodes closest to the key, including this node, by distance in the shorter direction;
  // of two at the same distance the lower id is first.
  void closest(Id key, std::size_t count, std::vector<Contact>& out) const;
  bool empty() const { return larger_.empty() && smaller_.empty(); }
  // Appends each leaf once.
  void all(std::vector<Contact>& out) const;

  // Nearest first.
  const std::vector<Contact>& larger() const { return larger_; }
  const std::vector<Contact>& smaller() const { return smaller_; }
  std::size_t half() const { return half_; }

 private:
  Contact self_;
  std::size_t half_;
  std::vector<Contact> larger_;
  std::vector<Contact> smaller_;
};

// True if a is nearer to the key than b.
bool numerically_closer(Id key, Id a, Id b);

}  // namespace fedge::dht
