#include "dht/overlays/leaf_set.h"

#include <algorithm>

namespace fedge::dht {
namespace {

// Inserts into one half, ordered by `distance`; the outermost is dropped if the half is full.
template <class Distance>
bool insert(std::vector<Contact>& half, std::size_t size, const Contact& contact, Distance distance) {
  const Id mine = distance(contact);
  if (half.size() == size && distance(half.back()) <= mine) return false;
  if (contains(half, contact.address)) return false;
  const auto at =
      std::find_if(half.begin(), half.end(), [&](const Contact& other) { return distance(other) > mine; });
  half.insert(at, contact);
  if (half.size() > size) half.pop_back();
  return true;
}

}  // namespace

bool numerically_closer(Id key, Id a, Id b) {
  const Id of_a = ring_distance(key, a);
  const Id of_b = ring_distance(key, b);
  return of_a != of_b ? of_a < of_b : a < b;
}

bool LeafSet::wants(const Contact& contact) const {
  if (contact.address == self_.address || contact.id == self_.id) return false;
  const bool above = larger_.size() < half_ || contact.id - self_.id < larger_.back().id - self_.id;
  const bool below = smaller_.size() < half_ || self_.id - contact.id < self_.id - smaller_.back().id;
  return (above && !contains(larger_, contact.address)) || (below && !contains(smaller_, contact.address));
}

bool LeafSet::consider(const Contact& contact) {
  if (contact.address == self_.address || contact.id == self_.id) return false;
  const bool above = insert(larger_, half_, contact, [&](const Contact& c) { return c.id - self_.id; });
  const bool below = insert(smaller_, half_, contact, [&](const Contact& c) { return self_.id - c.id; });
  return above || below;
}

bool LeafSet::remove(Address address) {
  const auto is = [&](const Contact& contact) { return contact.address == address; };
  return std::erase_if(larger_, is) + std::erase_if(smaller_, is) > 0;
}

void LeafSet::clear() {
  larger_.clear();
  smaller_.clear();
}

bool LeafSet::covers(Id key) const {
  if (larger_.empty() || smaller_.empty()) {
    if (empty() || key == self_.id) return true;
    return larger_.empty() ? self_.id - key <= self_.id - smaller_.back().id
                           : key - self_.id <= larger_.back().id - self_.id;
  }
  const Id up = larger_.back().id - self_.id;
  const Id down = self_.id - smaller_.back().id;
  const bool meet =
      up >= Id{0} - down;  // clockwise, the outermost larger leaf is at or beyond the outermost smaller one
  return meet || key - self_.id <= up || self_.id - key <= down;
}

void LeafSet::closest(Id key, std::size_t count, std::vector<Contact>& out) const {
  const std::size_t begin = out.size();
  const auto add = [&](const Contact& contact) {
    const auto first = out.begin() + static_cast<std::ptrdiff_t>(begin);
    if (out.size() - begin == count && !numerically_closer(key, contact.id, out.back().id)) return;
    const auto at = std::find_if(first, out.end(), [&](const Contact& other) {
      return !numerically_closer(key, other.id, contact.id);
    });
    if (at != out.end() && at->address == contact.address) return;
    out.insert(at, contact);
    if (out.size() - begin > count) out.pop_back();
  };
  add(self_);
  for (const Contact& contact : larger_) add(contact);
  for (const Contact& contact : smaller_) add(contact);
}

void LeafSet::all(std::vector<Contact>& out) const {
  out.insert(out.end(), larger_.begin(), larger_.end());
  for (const Contact& contact : smaller_)
    if (!contains(larger_, contact.address)) out.push_back(contact);
}

}  // namespace fedge::dht
