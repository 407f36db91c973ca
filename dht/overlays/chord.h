// Chord's tables: a ring of successors and predecessors, and fingers that halve the distance. Follows the
// rules of routing.h: pure, one thread, owned by a node. State: about log2 N fingers, `successors`
// successors, and as many predecessors as replicas. Source: Stoica, Morris, Karger, Kaashoek, Balakrishnan,
// "Chord", SIGCOMM 2001, sections 4 and 5 (join, stabilize, notify, fix_fingers, check_predecessor, successor
// lists). Our additions:
//
// notify carries the sender's predecessors: repair needs the responsible nodes on both sides of a holder. If
// a predecessor is gone, the one before replaces it until the next notify. Changes propagate at once: a node
// with a nearer successor stabilizes with it immediately, and a node with a nearer predecessor tells the
// former one. Otherwise nodes that join between the same two in one round form branches that merge by one
// node a round. A node without a predecessor for some rounds is outside the ring and looks for its place
// again.
#pragma once

#include <span>
#include <vector>

#include "dht/overlays/routing.h"

namespace fedge::dht {

class Chord final : public Routing {
 public:
  Chord(const Contact& self, const OverlayOptions& options);

  void clear() override;
  void join(const Contact& bootstrap, Host& host) override;
  void tick(Host& host) override;
  Found route(Id key, std::vector<Contact>& out) const override;
  void responsible(Id key, std::size_t count, std::vector<Contact>& out) const override;
  void answer(const Message& request, Message& reply, Host& host) override;
  void replied(const Message& reply, std::uint32_t tag, Host& host) override;
  void told(const Message& message, Host& host) override;
  void searched(std::uint32_t tag, const SearchOutcome& outcome, Host& host) override;
  void heard(const Contact& /*contact*/, bool /*ping*/, Host& /*host*/) override {}
  void silent(const Contact& contact, Host& host) override;
  void neighbours(std::vector<Contact>& out) const override;
  std::size_t contacts() const override;
  std::unique_ptr<Search> make_search() const override;
  void prefetch(Id from, Id key) const override;
  void fill(std::span<const Contact> everybody, Rng& rng) override;

  // Nearest first; none beyond this node.
  const std::vector<Contact>& successors() const { return successors_; }
  const std::vector<Contact>& predecessors() const { return predecessors_; }
  // Distinct fingers, by distance.
  const std::vector<Contact>& fingers() const { return fingers_; }

 private:
  enum Tag : std::uint32_t { kStabilize, kPing, kJoin, kPlace, kFinger };

  Id distance(const Contact& contact) const { return clockwise(self_.id, contact.id); }
  unsigned slot_of(const Contact& finger) const { return magnitude(distance(finger)); }
  void stabilize(Host& host, Purpose purpose);
  void notify(Host& host, Purpose purpose);
  void notified(const Message& message, Host& host);
  bool append(const Contact& contact);
  bool adopt(const Contact& contact);
  void fix_finger(Host& host);
  void set_finger(unsigned from, const Contact& contact);
  void preceding(Id key, std::vector<Contact>& out) const;

  Contact self_;
  ChordOptions options_;
  std::size_t replication_;
  Pace stabilize_pace_;
  Pace finger_pace_;
  Pace predecessor_pace_;
  std::vector<Contact> successors_;
  std::vector<Contact> predecessors_;
  // Sorted by distance. A finger's slot is the power of two of its distance; repeated entries of the paper's
  // table are stored once.
  std::vector<Contact> fingers_;
  unsigned next_finger_ = 0;
  unsigned ticks_alone_ = 0;  // ticks since the last predecessor was lost
};

}  // namespace fedge::dht
