// Pastry's tables: a leaf set of numerical neighbours, a routing table by shared prefix (each slot holds the
// nearest fitting node by delay), and optionally a neighbourhood set. Follows the rules of routing.h: pure,
// one thread, owned by a node. State: L leaves and about (2^b - 1) log_{2^b} N contacts.
// Source: Rowstron and Druschel, "Pastry", Middleware 2001, sections 2.1 to 2.5. Our choices where the paper
// leaves them open: every T_s the node probes its two adjacent leaves and one more in rotation, which reply
// with their leaves. A node known only from others enters the leaf set after it has answered; otherwise dead
// nodes would circulate forever. Proximity is the network's delay without its random factor.
#pragma once

#include <span>
#include <vector>

#include "dht/overlays/leaf_set.h"
#include "dht/overlays/routing.h"

namespace fedge::dht {

class Pastry final : public Routing {
 public:
  Pastry(const Contact& self, const OverlayOptions& options, Proximity proximity);

  void clear() override;
  void join(const Contact& bootstrap, Host& host) override;
  void tick(Host& host) override;
  Found route(Id key, std::vector<Contact>& out) const override;
  void responsible(Id key, std::size_t count, std::vector<Contact>& out) const override;
  void answer(const Message& request, Message& reply, Host& host) override;
  void replied(const Message& reply, std::uint32_t tag, Host& host) override;
  void told(const Message& /*message*/, Host& /*host*/) override {}  // a new node: heard() does all
  void searched(std::uint32_t tag, const SearchOutcome& outcome, Host& host) override;
  void heard(const Contact& contact, bool ping, Host& host) override;
  void silent(const Contact& contact, Host& host) override;
  void neighbours(std::vector<Contact>& out) const override;
  std::size_t contacts() const override;
  std::unique_ptr<Search> make_search() const override;
  void prefetch(Id from, Id key) const override;
  void fill(std::span<const Contact> everybody, Rng& rng) override;

  const LeafSet& leaves() const { return leaves_; }
  // The table's entry for nodes that share `row` digits and continue with `column`; unknown if empty.
  Contact entry(std::size_t row, std::size_t column) const;
  std::size_t rows() const { return table_.size() >> options_.digit_bits; }

 private:
  void consider(const Contact& contact);
  void consider_for_table(const Contact& contact);
  void add_row(std::size_t row, std::vector<Contact>& out) const;
  void probe(Host& host);
  void fetch_row(Host& host);
  Contact any_in_row(std::size_t row, Host& host) const;
  void everyone(std::vector<Contact>& out) const;
  template <class Visit>
  void for_each_known(Visit visit) const;

  Contact self_;
  PastryOptions options_;
  std::size_t replication_;
  Proximity proximity_;
  Pace probe_pace_;
  Pace row_pace_;
  LeafSet leaves_;
  std::vector<Contact> table_;          // rows of 2^b entries, up to the last used one
  std::vector<Contact> neighbourhood_;  // nearest by delay first
  std::vector<Address> candidates_;     // probed nodes that may become leaves
  std::size_t next_leaf_ = 0;
};

}  // namespace fedge::dht
