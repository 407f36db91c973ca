// Properties that the papers prove for perfect tables.
#include <cmath>

#include "tests/unit/sim/overlays/networks.h"

using namespace fedge;
using namespace fedge::dht;
using namespace fedge::sim;

namespace {

// Publishes a value under every key and looks all keys up from all or some nodes.
void check_owners(OverlayOptions options, std::size_t nodes, std::size_t keys, std::size_t origins) {
  const std::string name = to_string(options.kind);
  CAPTURE(name);
  CAPTURE(nodes);
  OverlayNetwork network(options, nodes, Rng(nodes));
  network.start_static(everybody(nodes));
  Rng rng(9);
  std::vector<Id> published;
  for (std::size_t i = 0; i < keys; ++i) {
    published.push_back(rng.next_u64());
    network.publish(static_cast<Address>(rng.below(nodes)),
                    {.key = published.back(), .bytes = bytes_of("v")});
  }
  run_for(network, 3);
  std::size_t wrong = 0;
  std::size_t done = 0;
  for (std::size_t o = 0; o < origins; ++o) {
    const auto from = static_cast<Address>(origins == nodes ? o : rng.below(nodes));
    for (const Id key : published) {
      const Contact owner = ranking(options.kind, network.members(), key).front();
      network.lookup(from, key, [&, owner](const LookupResult& result) {
        ++done;
        if (!result.ok || result.owner != owner || result.timeouts != 0) ++wrong;
      });
    }
    run_for(network, 0.1);
  }
  run_for(network, 5);
  CHECK(done == origins * keys);
  CHECK(wrong == 0);
}

// Equally spaced ids i * 2^64 / n with full tables; a node knows only one successor and one predecessor, as
// in the paper.
struct EqualRing {
  EqualRing(unsigned bits, FingerInterval interval)
      : size(std::size_t{1} << bits), step(Id{1} << (64 - bits)) {
    OverlayOptions options;
    options.replication = 1;
    options.chord.successors = 1;
    options.chord.interval = interval;
    for (std::size_t i = 0; i < size; ++i) all.push_back({i * step, static_cast<Address>(i)});
    Rng rng(1);
    for (const Contact& contact : all) {
      nodes.push_back(std::make_unique<Chord>(contact, options));
      nodes.back()->fill(all, rng);
    }
  }
  // Counts the hops from `from` to the node that declares itself responsible.
  unsigned hops(std::size_t from, Id key) const {
    std::size_t at = from;
    for (unsigned count = 0;; ++count) {
      std::vector<Contact> out;
      if (nodes[at]->route(key, out) == Found::kResponsible) return count;
      REQUIRE(count < 64);
      at = out.front().address;
    }
  }
  std::size_t size;
  Id step;
  std::vector<Contact> all;
  std::vector<std::unique_ptr<Chord>> nodes;
};

}  // namespace

// Invariant 1.
TEST_CASE("overlay: with perfect tables every lookup from everywhere finds the owner") {
  for (const OverlayKind kind : kAllKinds)
    for (const unsigned nodes : {1U, 2U, 3U, 5U, 17U, 64U}) check_owners(options_for(kind), nodes, 40, nodes);
}

// Invariant 1.
TEST_CASE("overlay: with perfect tables 256 nodes find every owner from everywhere") {
  for (const OverlayKind kind : kAllKinds) check_owners(options_for(kind), 256, 24, 256);
}

// Invariant 1.
TEST_CASE("overlay: recursive lookups with perfect tables find the owner as well") {
  for (const OverlayKind kind : {OverlayKind::kChord, OverlayKind::kPastry})
    for (const unsigned nodes : {2U, 17U, 128U}) {
      OverlayOptions options = options_for(kind);
      options.recursive = true;
      check_owners(options, nodes, 40, nodes);
    }
}

// Invariant 1.
TEST_CASE("overlay: 4096 nodes with perfect tables find owners, sampled") {
  for (const OverlayKind kind : kAllKinds) {
    OverlayOptions options = options_for(kind);
    options.kademlia.cache = false;  // a node that holds only a cached copy may be too far away to know the
                                     // owner
    check_owners(options, 4096, 20, 20);
  }
}

// Invariant 2.
TEST_CASE(
    "chord: on an equally spaced ring a node's id at distance d takes popcount(d) hops, the key's own finger "
    "included") {
  constexpr unsigned kBits = 7;
  const EqualRing ring(kBits, FingerInterval::kClosed);
  double sum = 0;
  for (std::size_t from : {std::size_t{0}, std::size_t{77}})
    for (std::size_t d = 0; d < ring.size; ++d) {
      const Id key = (from + d) % ring.size * ring.step;
      CHECK(ring.hops(from, key) == static_cast<unsigned>(std::popcount(d)));
      sum += static_cast<double>(std::popcount(d)) / 2;
    }
  CHECK(sum / static_cast<double>(ring.size) == kBits / 2.0);
}

// Invariant 2.
TEST_CASE("chord: with the open interval it takes popcount(d - 1) + 1 hops") {
  const EqualRing ring(7, FingerInterval::kOpen);
  CHECK(ring.hops(3, 3 * ring.step) == 0);
  for (std::size_t d = 1; d < ring.size; ++d)
    CHECK(ring.hops(3, (3 + d) % ring.size * ring.step) == static_cast<unsigned>(std::popcount(d - 1)) + 1);
}

// Invariant 2.
TEST_CASE("chord: each hop over a finger at least halves the distance, and all are at most log2 N") {
  const EqualRing ring(8, FingerInterval::kClosed);
  Rng rng(2);
  for (int i = 0; i < 500; ++i) {
    const Id key = rng.next_u64();
    std::size_t at = rng.below(ring.size);
    unsigned hops = 0;
    for (;;) {
      std::vector<Contact> out;
      const Found found = ring.nodes[at]->route(key, out);
      if (found == Found::kResponsible) break;
      if (found == Found::kCloser)
        CHECK(clockwise(out.front().id, key) <= clockwise(ring.all[at].id, key) / 2);
      at = out.front().address;
      ++hops;
    }
    CHECK(hops <= 8 + 1);  // the last hop goes to the successor, which may lie behind the key
  }
}

// The finger table of the paper's figure 4, m = 3 and nodes 0, 1 and 3, by hand. For node 1, successor(2) and
// successor(3) are 3, and successor(5) is 0; duplicates are dropped.
TEST_CASE("chord: the fingers of the paper's example, each once") {
  const Id step = Id{1} << 61;
  const std::vector<Contact> all = {{0, 0}, {step, 1}, {3 * step, 3}};
  OverlayOptions options;
  Chord node(all[1], options);
  Rng rng(1);
  node.fill(all, rng);
  CHECK(node.fingers() == std::vector<Contact>{all[2], all[0]});
  Chord zero(all[0], options);
  zero.fill(all, rng);
  CHECK(zero.fingers() ==
        std::vector<Contact>{all[1], all[2]});  // successors of 1 and 2; that of 4 is node 0 itself
}

// Invariant 3.
TEST_CASE("pastry: a hop shares more digits with the key or is nearer to it, and no route has a loop") {
  for (const unsigned bits : {2U, 4U}) {
    OverlayOptions options = options_for(OverlayKind::kPastry);
    options.pastry.digit_bits = bits;
    OverlayNetwork network(options, 200, Rng(bits));
    network.start_static(everybody(200));
    Rng rng(3);
    for (int i = 0; i < 2000; ++i) {
      const Id key = rng.next_u64();
      auto at = static_cast<Address>(rng.below(200));
      std::set<Address> seen;
      for (;;) {
        REQUIRE(seen.insert(at).second);
        std::vector<Contact> out;
        const auto& node = network.node(at);
        const Found found = node.routing().route(key, out);
        if (found == Found::kResponsible) break;
        for (const Contact& next : out) {
          if (found == Found::kOwners) break;  // the last hop, within the leaf set
          const std::size_t before = shared_prefix(node.self().id, key, bits);
          const std::size_t after = shared_prefix(next.id, key, bits);
          const bool nearer = badness(OverlayKind::kPastry, next.id, key) <
                              badness(OverlayKind::kPastry, node.self().id, key);
          const bool progress = after > before || (after == before && nearer);
          CHECK(progress);
        }
        at = out.front().address;
      }
      CHECK(seen.size() <= 64 / bits);
      CHECK(at == ranking(OverlayKind::kPastry, network.members(), key).front().address);
    }
  }
}

TEST_CASE("pastry: every slot of a perfect table holds the nearest by delay of those that fit") {
  OverlayNetwork network(options_for(OverlayKind::kPastry), 150, Rng(4));
  network.start_static(everybody(150));
  const auto& self = network.node(7).self();
  const auto& table = static_cast<const Pastry&>(network.node(7).routing());
  for (std::size_t row = 0; row < 3; ++row)
    for (std::size_t column = 0; column < 16; ++column) {
      std::optional<Duration> least;
      for (const Contact& other : network.members())
        if (other.id != self.id && shared_prefix(self.id, other.id, 4) == row &&
            digit(other.id, row, 4) == column) {
          const Duration delay = network.latency().base(7, other.address);
          if (!least || delay < *least) least = delay;
        }
      const Contact entry = table.entry(row, column);
      REQUIRE(entry.known() == least.has_value());
      if (least) CHECK(network.latency().base(7, entry.address) == *least);
    }
}

// Invariant 4, against a sort of all nodes.
TEST_CASE("kademlia: with every node known a lookup's result is the k globally closest") {
  OverlayOptions options = options_for(OverlayKind::kKademlia);
  options.kademlia.k = 100;
  OverlayNetwork network(options, 100, Rng(8));
  network.start_static(everybody(100));
  Rng rng(6);
  for (int i = 0; i < 200; ++i) {
    const Id key = rng.next_u64();
    const auto at = static_cast<Address>(rng.below(100));
    std::vector<Contact> closest;
    static_cast<const Kademlia&>(network.node(at).routing()).closest(key, 10, closest);
    std::vector<Contact> others = network.members();
    std::erase_if(others, [&](const Contact& contact) { return contact.address == at; });
    std::vector<Contact> expected = ranking(OverlayKind::kKademlia, others, key);
    expected.resize(10);
    CHECK(ranking(OverlayKind::kKademlia, closest, key) == expected);
  }
}

// Invariant 4. With one request at a time and only the closest node wanted, every answer but the last must
// return a node nearer than all known ones.
TEST_CASE(
    "kademlia: each iteration strictly lowers the least distance known, until the closest has answered") {
  OverlayNetwork network(options_for(OverlayKind::kKademlia), 300, Rng(12));
  network.start_static(everybody(300));
  Rng rng(7);
  std::size_t most = 0;
  for (int i = 0; i < 300; ++i) {
    const Id key = rng.next_u64();
    const auto from = static_cast<Address>(rng.below(300));
    std::vector<Contact> known;
    network.node(from).routing().route(key, known);
    const auto search = make_xor_search({.alpha = 1, .width = 1});
    search->start({.target = key, .self = network.node(from).self()}, Found::kCloser, known);
    Id least = network.node(from).self().id ^ key;
    std::size_t asked = 0;
    while (const auto contact = search->next()) {
      CHECK((contact->id ^ key) < least);
      least = contact->id ^ key;
      Message reply;
      reply.from = *contact;
      network.node(contact->address).routing().route(key, reply.contacts);
      reply.routed = static_cast<std::uint16_t>(reply.contacts.size());
      search->answered(reply);
      ++asked;
    }
    CHECK(search->done());
    CHECK(search->outcome().nodes.front() == ranking(OverlayKind::kKademlia, network.members(), key).front());
    most = std::max(most, asked);
  }
  CHECK(most >= 2);
}

// Invariant 6.
TEST_CASE("kademlia: buckets hold at most k, each where its distance puts it, and never the node itself") {
  for (const bool perfect : {true, false}) {
    OverlayOptions options = options_for(OverlayKind::kKademlia);
    options.kademlia.k = 4;
    OverlayNetwork network(options, 80, Rng(2));
    if (perfect)
      network.start_static(everybody(80));
    else
      join_all(network, 0.2, 30);
    std::size_t full = 0;
    for (const Contact& member : network.members())
      for (unsigned index = 0; index < kIdBits; ++index) {
        const auto& bucket =
            static_cast<const Kademlia&>(network.node(member.address).routing()).bucket(index);
        CHECK(bucket.size() <= 4);
        if (bucket.size() == 4) ++full;
        for (const Contact& contact : bucket) {
          CHECK(contact.address != member.address);
          const Id distance = contact.id ^ member.id;
          CHECK((distance >> index) == 1);
        }
      }
    CHECK(full > 200);
  }
}
