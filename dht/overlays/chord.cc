#include "dht/overlays/chord.h"

#include <algorithm>
#include <utility>

namespace fedge::dht {
namespace {

// Candidates in an answer: the best, and alternatives if it is dead.
constexpr std::size_t kChordAlternatives = 3;
// Usual number of fingers: log2 of thousands of nodes, plus a few.
constexpr std::size_t kUsualFingers = 16;
// Ticks without a predecessor until a node looks for its place.
constexpr unsigned kLonely = 3;

void remove(std::vector<Contact>& contacts, Address address) {
  std::erase_if(contacts, [&](const Contact& contact) { return contact.address == address; });
}

}  // namespace

Chord::Chord(const Contact& self, const OverlayOptions& options)
    : self_(self),
      options_(options.chord),
      replication_(options.replication),
      stabilize_pace_(options.chord.stabilize * options.maintenance_scale),
      finger_pace_(options.chord.fix_finger * options.maintenance_scale),
      predecessor_pace_(options.chord.check_predecessor * options.maintenance_scale) {
  // Keeps a node's lists adjacent in memory, because they are read together.
  successors_.reserve(options_.successors + 1);
  predecessors_.reserve(replication_);
  fingers_.reserve(kUsualFingers);
}

void Chord::clear() {
  successors_.clear();
  predecessors_.clear();
  fingers_.clear();
  next_finger_ = ticks_alone_ = 0;
}

void Chord::join(const Contact& bootstrap, Host& host) {
  predecessors_.clear();
  host.find({.target = self_.id, .purpose = Purpose::kJoin, .tag = kJoin, .via = bootstrap});
}

void Chord::tick(Host& host) {
  if (successors_.empty()) {
    // All successors have failed: close the ring through any known contact and stabilize from there.
    if (!fingers_.empty())
      successors_.push_back(fingers_.front());
    else if (!predecessors_.empty())
      successors_.push_back(predecessors_.back());
    else
      return host.joined(false);
  }
  ticks_alone_ = predecessors_.empty() ? ticks_alone_ + 1 : 0;
  if (ticks_alone_ > 0 && ticks_alone_ % kLonely == 0)
    host.find({.target = self_.id, .tag = kPlace, .via = successors_.front()});
  if (stabilize_pace_.rounds_begin() > 0) stabilize(host, Purpose::kMaintenance);
  if (predecessor_pace_.rounds_begin() > 0 && !predecessors_.empty())
    host.request(predecessors_.front(), Kind::kPing, Purpose::kMaintenance, kPing);
  for (unsigned due = finger_pace_.rounds_begin(); due > 0; --due) fix_finger(host);
}

void Chord::stabilize(Host& host, Purpose purpose) {
  host.request(successors_.front(), Kind::kNeighbours, purpose, kStabilize);
}

void Chord::notify(Host& host, Purpose purpose) {
  Message& message = host.tell(successors_.front(), Kind::kNotify, purpose);
  for (std::size_t i = 0; i + 1 < replication_ && i < predecessors_.size(); ++i)
    message.contacts.push_back(predecessors_[i]);
}

void Chord::fix_finger(Host& host) {
  if (successors_.empty()) return;
  const unsigned nearest = magnitude(distance(successors_.front()));
  if (next_finger_ <= nearest) {
    set_finger(0, successors_.front());
    next_finger_ = nearest + 1;
  }
  if (next_finger_ >= kIdBits) {
    next_finger_ = 0;
    return;
  }
  const unsigned slot = next_finger_++;
  host.find({.target = self_.id + (Id{1} << slot), .tag = kFinger + slot});
}

// `contact` is the successor of self + 2^from: no node lies between them.
void Chord::set_finger(unsigned from, const Contact& contact) {
  const unsigned slot = contact.address == self_.address ? static_cast<unsigned>(kIdBits) : slot_of(contact);
  std::erase_if(fingers_,
                [&](const Contact& finger) { return slot_of(finger) >= from && slot_of(finger) <= slot; });
  if (slot < kIdBits) {
    const auto at = std::find_if(fingers_.begin(), fingers_.end(),
                                 [&](const Contact& finger) { return slot_of(finger) > slot; });
    fingers_.insert(at, contact);
  }
  next_finger_ = slot >= kIdBits - 1 ? 0 : slot + 1;
}

Found Chord::route(Id key, std::vector<Contact>& out) const {
  if (successors_.empty()) {
    out.push_back(self_);
    return Found::kResponsible;
  }
  const bool next = in_open_closed(key, self_.id, successors_.front().id);
  const bool behind = !predecessors_.empty() && in_open_closed(key, predecessors_.back().id, self_.id);
  if (!next && !behind) {
    preceding(key, out);
    return Found::kCloser;
  }
  responsible(key, std::max(replication_, options_.successors), out);
  if (out.front().address != self_.address) return Found::kOwners;
  if (out.size() > replication_) out.resize(replication_);
  return Found::kResponsible;
}

// closest_preceding_node, plus the two next best.
void Chord::preceding(Id key, std::vector<Contact>& out) const {
  const bool closed = options_.interval == FingerInterval::kClosed;
  const auto consider = [&](const Contact& contact) {
    const bool between =
        closed ? in_open_closed(contact.id, self_.id, key) : in_open(contact.id, self_.id, key);
    if (!between || contains(out, contact.address)) return;
    const auto at = std::find_if(out.begin(), out.end(),
                                 [&](const Contact& other) { return distance(other) < distance(contact); });
    if (at == out.end() && out.size() == kChordAlternatives) return;
    out.insert(at, contact);
    if (out.size() > kChordAlternatives) out.pop_back();
  };
  for (auto it = fingers_.rbegin(); it != fingers_.rend() && out.size() < kChordAlternatives; ++it)
    consider(*it);
  const bool farther = out.size() < kChordAlternatives || distance(successors_.back()) > distance(out.back());
  if (farther)
    for (const Contact& contact : successors_) consider(contact);
  if (out.empty()) out.push_back(successors_.front());
}

void Chord::responsible(Id key, std::size_t count, std::vector<Contact>& out) const {
  const auto add = [&](const Contact& contact) {
    if (out.size() < count && !contains(out, contact.address)) out.push_back(contact);
  };
  const bool ahead = !successors_.empty() && in_open_closed(key, self_.id, successors_.back().id);
  const bool alone = successors_.empty() && predecessors_.empty();
  const bool behind = !predecessors_.empty() && in_open_closed(key, predecessors_.back().id, self_.id);
  if (behind || alone) {
    for (std::size_t i = predecessors_.size(); i-- > 0;)
      if (i + 1 < predecessors_.size() && in_open_closed(key, predecessors_.back().id, predecessors_[i].id))
        add(predecessors_[i]);
    add(self_);
  } else if (!ahead) {
    return;
  }
  for (const Contact& contact : successors_)
    if (behind || alone || in_open_closed(key, self_.id, contact.id)) add(contact);
  // If the two lists meet, the ring is so small that it continues with this node.
  if (!predecessors_.empty() && contains(successors_, predecessors_.back().address)) add(self_);
}

void Chord::answer(const Message& request, Message& reply, Host& /*host*/) {
  if (request.kind != Kind::kNeighbours) return;
  if (!predecessors_.empty()) reply.contacts.push_back(predecessors_.front());
  reply.routed = static_cast<std::uint16_t>(reply.contacts.size());
  reply.contacts.insert(reply.contacts.end(), successors_.begin(), successors_.end());
}

void Chord::replied(const Message& reply, std::uint32_t tag, Host& host) {
  if (tag != kStabilize || successors_.empty()) return;
  const Contact successor = successors_.front();
  if (reply.from.address != successor.address) return;
  successors_.clear();
  append(successor);
  for (std::size_t i = reply.routed; i < reply.contacts.size(); ++i)
    if (!append(reply.contacts[i])) break;
  if (reply.routed > 0 && adopt(reply.contacts[0])) stabilize(host, reply.purpose);
  notify(host, reply.purpose);
}

// Appends after the last successor. Returns false if the contact does not lie there: the list has come round
// to this node or beyond, because other lists skip a node outside the ring.
bool Chord::append(const Contact& contact) {
  if (contact.address == self_.address || successors_.size() >= options_.successors) return false;
  if (!successors_.empty() && !in_open(contact.id, successors_.back().id, self_.id)) return false;
  successors_.push_back(contact);
  return true;
}

// Makes the contact the successor if it lies before the current one.
bool Chord::adopt(const Contact& contact) {
  if (!in_open(contact.id, self_.id, successors_.front().id)) return false;
  remove(successors_, contact.address);
  successors_.insert(successors_.begin(), contact);
  if (successors_.size() > options_.successors) successors_.pop_back();
  return true;
}

void Chord::told(const Message& message, Host& host) {
  if (message.kind == Kind::kNotify) return notified(message, host);
  if (message.kind != Kind::kHint || message.contacts.empty() || successors_.empty()) return;
  const Contact& between = message.contacts.front();
  if (!host.suspected(between.address) && adopt(between)) stabilize(host, message.purpose);
}

void Chord::notified(const Message& message, Host& host) {
  const Contact& from = message.from;
  if (successors_.empty()) successors_.push_back(from);
  if (!predecessors_.empty() && from.address != predecessors_.front().address &&
      !in_open(from.id, predecessors_.front().id, self_.id))
    return;
  if (!predecessors_.empty() && from.address != predecessors_.front().address)
    host.tell(predecessors_.front(), Kind::kHint, message.purpose).contacts.push_back(from);
  std::vector<Contact>& list = host.scratch();
  list.assign(1, from);
  const auto append = [&](const Contact& contact) {
    if (list.size() >= replication_ || contains(list, contact.address)) return;
    if (contact.address == self_.address || !in_open(contact.id, self_.id, list.back().id)) return;
    list.push_back(contact);
  };
  for (const Contact& contact : message.contacts) append(contact);
  for (const Contact& contact : predecessors_) append(contact);
  predecessors_.assign(list.begin(), list.end());
}

void Chord::searched(std::uint32_t tag, const SearchOutcome& outcome, Host& host) {
  if (tag >= kFinger) {
    if (outcome.nodes.empty()) return;
    const unsigned slot = tag - kFinger;
    const Contact& found = outcome.nodes.front();
    // A finger must lie beyond its start; other results come from a ring that is not complete yet.
    if (found.address == self_.address || distance(found) >= (Id{1} << slot)) set_finger(slot, found);
    return;
  }
  std::vector<Contact> nodes = outcome.nodes;
  remove(nodes, self_.address);
  if (tag == kPlace) {
    if (!nodes.empty() && !successors_.empty() && adopt(nodes.front()))
      stabilize(host, Purpose::kMaintenance);
    return;
  }
  if (nodes.empty()) return host.joined(false);
  successors_.clear();
  for (const Contact& contact : nodes)
    if (!append(contact)) break;
  host.joined(true);
  stabilize(host, Purpose::kJoin);
}

void Chord::silent(const Contact& contact, Host& /*host*/) {
  remove(successors_, contact.address);
  remove(predecessors_, contact.address);
  remove(fingers_, contact.address);
}

void Chord::neighbours(std::vector<Contact>& out) const {
  out = predecessors_;
  for (std::size_t i = 0; i < replication_ && i < successors_.size(); ++i)
    if (!contains(out, successors_[i].address)) out.push_back(successors_[i]);
}

std::size_t Chord::contacts() const {
  std::vector<Contact> all = fingers_;
  for (const auto* list : {&successors_, &predecessors_})
    for (const Contact& contact : *list)
      if (!contains(all, contact.address)) all.push_back(contact);
  return all.size();
}

std::unique_ptr<Search> Chord::make_search() const { return make_routed_search(); }

void Chord::prefetch(Id /*from*/, Id /*key*/) const {
  for (std::size_t i = 0; i < successors_.size(); i += 4) __builtin_prefetch(successors_.data() + i);
  __builtin_prefetch(predecessors_.data());
  for (std::size_t i = 0; i < fingers_.size(); i += 4) __builtin_prefetch(fingers_.data() + i);
}

void Chord::fill(std::span<const Contact> everybody, Rng& /*rng*/) {
  clear();
  const auto by_id = [](const Contact& contact, Id id) { return contact.id < id; };
  const auto place = [&](Id id) {
    const auto at = std::lower_bound(everybody.begin(), everybody.end(), id, by_id);
    return static_cast<std::size_t>(at - everybody.begin()) % everybody.size();
  };
  const std::size_t n = everybody.size();
  const std::size_t own = place(self_.id);
  for (std::size_t i = 1; i < n && i <= options_.successors; ++i)
    successors_.push_back(everybody[(own + i) % n]);
  for (std::size_t i = 1; i < n && i <= replication_; ++i)
    predecessors_.push_back(everybody[(own + n - i) % n]);
  for (unsigned slot = 0; n > 1 && slot < kIdBits;) {
    const Contact& finger = everybody[place(self_.id + (Id{1} << slot))];
    if (finger.address == self_.address) break;
    set_finger(slot, finger);
    slot = magnitude(distance(finger)) + 1;
  }
  next_finger_ = 0;
}

}  // namespace fedge::dht
