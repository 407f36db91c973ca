// LeafSet: the nodes numerically next to one's own, half of them on either side of the ring (Pastry; Rowstron
// and Druschel 2001, section 2.1). In a network smaller than itself a node is in both halves. Plain data with
// rules; one thread; every call looks at all L contacts.
#pragma once

#include <cstddef>
#include <vector>

#include "sim/overlays/id.h"

namespace fedge::sim {

class LeafSet {
 public:
  LeafSet(const Contact& self, std::size_t size) : self_(self), half_(size / 2) {
    larger_.reserve(half_ + 1);
    smaller_.reserve(half_ + 1);
  }

  // It is not there and would come in.
  bool wants(const Contact& contact) const;
  // True if it came in.
  bool consider(const Contact& contact);
  bool remove(Address address);
  void clear();
  // The key lies between the outermost leaves, or the two halves meet and so are all there is.
  bool covers(Id key) const;
  // Appends the `count` closest to the key, this node among them, by distance the shorter way round; of two
  // at the same distance the one of the lower id first.
  void closest(Id key, std::size_t count, std::vector<Contact>& out) const;
  bool empty() const { return larger_.empty() && smaller_.empty(); }
  // Each once.
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

// Whether a is nearer to the key than b.
bool numerically_closer(Id key, Id a, Id b);

}  // namespace fedge::sim
