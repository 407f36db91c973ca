// Kademlia's tables: k-buckets by XOR distance, the least recently heard contact first, each with a small
// cache of replacements. Follows the rules of routing.h: pure, one thread, owned by a node. State: about k
// log2(N / k) contacts and up to kReplacements more a bucket.
// Source: Maymounkov and Mazieres, "Kademlia", IPTPS 2002, sections 2.2 to 2.5 and 4.1. Our choices where the
// paper leaves them open: the oldest contact of a full bucket is pinged at most once in `ping` rounds, and
// never because of a ping, which would cause endless pings. A new node announces itself to its k closest.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "dht/overlays/routing.h"

namespace fedge::dht {

class Kademlia final : public Routing {
 public:
  static constexpr std::size_t kReplacements = 8;

  // `identities` must outlive the object.
  Kademlia(const Contact& self, const OverlayOptions& options, const Identities& identities);

  void clear() override;
  void join(const Contact& bootstrap, Host& host) override;
  void tick(Host& host) override;
  Found route(Id key, std::vector<Contact>& out) const override;
  void responsible(Id key, std::size_t count, std::vector<Contact>& out) const override;
  void answer(const Message& /*request*/, Message& /*reply*/, Host& /*host*/) override {}
  void replied(const Message& reply, std::uint32_t tag, Host& host) override;
  void told(const Message& /*message*/, Host& /*host*/) override {}  // a new node: heard() does all
  void looked_for(Id target) override;
  void searched(std::uint32_t tag, const SearchOutcome& outcome, Host& host) override;
  bool believable(const Contact& contact) const override {
    return !protections_.bound_ids || identities_.genuine(contact);
  }
  void heard(const Contact& contact, bool ping, Host& host) override;
  void silent(const Contact& contact, Host& host) override;
  void neighbours(std::vector<Contact>& out) const override;
  std::size_t contacts() const override;
  std::unique_ptr<Search> make_search() const override;
  void prefetch(Id from, Id key) const override;
  void fill(std::span<const Contact> everybody, Rng& rng) override;

  // Least recently heard first.
  std::span<const Contact> bucket(unsigned index) const { return live(bucket_of(index)); }
  // Appends the `count` contacts closest to the target, in no particular order.
  void closest(Id target, std::size_t count, std::vector<Contact>& out) const;

 private:
  // Its contacts lie in a row of contacts_: k live ones, then the replacements, the most recently heard last.
  // All unused buckets refer to row 0, which stays empty.
  struct Bucket {
    double touched = 0;    // tick of the bucket's last lookup
    double ping_from = 0;  // tick from which the oldest contact may be pinged again
    std::uint16_t row = 0;
    std::uint8_t live = 0;
    std::uint8_t replacements = 0;
    bool pinging = false;
  };
  enum Tag : std::uint32_t { kJoin, kRefresh, kJoinRefresh, kPing = kJoinRefresh + kIdBits };

  // Farthest first: in a network of n nodes only about log2 n buckets are used.
  Bucket& bucket_of(unsigned index) { return buckets_[kIdBits - 1 - index]; }
  const Bucket& bucket_of(unsigned index) const { return buckets_[kIdBits - 1 - index]; }
  Contact* row_of(const Bucket& bucket) {
    return contacts_.data() + bucket.row * (options_.k + kReplacements);
  }
  std::span<Contact> live(const Bucket& bucket) { return {row_of(bucket), bucket.live}; }
  std::span<Contact> replacements(const Bucket& bucket) {
    return {row_of(bucket) + options_.k, bucket.replacements};
  }
  std::span<const Contact> live(const Bucket& bucket) const {
    return const_cast<Kademlia*>(this)->live(bucket);
  }
  void append_live(Bucket& bucket, const Contact& contact);
  // True if the newcomer's group has reached its limit in the bucket.
  bool crowded(std::span<const Contact> bucket, const Contact& newcomer) const;
  void forget_replacement(Bucket& bucket, Address address);

  unsigned index_of(Id id) const { return magnitude(xor_distance(self_.id, id)); }
  Id random_in(unsigned index, Host& host) const;
  void refresh_from(unsigned index, Host& host);

  Contact self_;
  KademliaOptions options_;
  Protections protections_;
  const Identities& identities_;
  double refresh_ticks_;
  double ping_ticks_;
  double ticks_ = 0;
  std::uint64_t filled_ = 0;  // one bit for each bucket with contacts
  std::vector<Contact> contacts_;
  std::array<Bucket, kIdBits> buckets_;
};

}  // namespace fedge::dht
