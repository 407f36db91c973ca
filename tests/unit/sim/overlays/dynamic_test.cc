// Overlays that form, lose nodes and get them back.
#include <cmath>

#include "tests/unit/sim/overlays/networks.h"

using namespace fedge;
using namespace fedge::dht;
using namespace fedge::sim;

namespace {

const Chord& chord_at(const OverlayNetwork& network, Address address) {
  return static_cast<const Chord&>(network.node(address).routing());
}

// The correct ring order, by sorting.
std::vector<Contact> following(const OverlayNetwork& network, Address address, std::size_t count) {
  const Id own = network.node(address).self().id;
  std::vector<Contact> others = network.members();
  std::erase_if(others, [&](const Contact& contact) { return contact.address == address; });
  std::sort(others.begin(), others.end(),
            [&](const Contact& a, const Contact& b) { return a.id - own < b.id - own; });
  if (others.size() > count) others.resize(count);
  return others;
}

// Counts the nodes on the way along first successors until a node repeats.
std::size_t cycle_length(const OverlayNetwork& network) {
  std::set<Address> met;
  Address at = network.members().front().address;
  while (met.insert(at).second) {
    const auto& successors = chord_at(network, at).successors();
    if (successors.empty()) break;
    at = successors.front().address;
  }
  return at == network.members().front().address ? met.size() : 0;
}

std::vector<Contact> pastry_leaves(const OverlayNetwork& network, Address address) {
  std::vector<Contact> leaves;
  static_cast<const Pastry&>(network.node(address).routing()).leaves().all(leaves);
  return leaves;
}

std::size_t good_lookups(OverlayNetwork& network, const std::vector<Id>& keys, std::size_t times) {
  Rng rng(77);
  std::size_t good = 0;
  for (std::size_t i = 0; i < times; ++i) {
    const Address from = network.members()[rng.below(network.members().size())].address;
    network.lookup(from, keys[rng.below(keys.size())],
                   [&](const LookupResult& result) { good += result.ok ? 1U : 0U; });
    run_for(network, 0.05);
  }
  run_for(network, 12);
  return good;
}

}  // namespace

// Invariant 5.
TEST_CASE("chord: log2(N) squared rounds after the last join the successors are one ring of all nodes") {
  for (const std::size_t nodes : {std::size_t{3}, std::size_t{40}, std::size_t{200}}) {
    OverlayNetwork network(options_for(OverlayKind::kChord), nodes, Rng(nodes));
    const double rounds = std::pow(std::ceil(std::log2(static_cast<double>(nodes))), 2);
    join_all(network, 0.05, rounds);
    CHECK(network.members().size() == nodes);
    CHECK(cycle_length(network) == nodes);
  }
}

TEST_CASE("chord: hundreds of nodes that join at once become one ring") {
  OverlayNetwork network(options_for(OverlayKind::kChord), 400, Rng(15));
  join_all(network, 0.002, 60);
  CHECK(cycle_length(network) == 400);
  for (const Contact& member : network.members())
    CHECK(chord_at(network, member.address).successors() == following(network, member.address, 8));
}

// Invariant 7.
TEST_CASE("chord: at rest each successor list is the next nodes round the ring") {
  OverlayNetwork network(options_for(OverlayKind::kChord), 60, Rng(3));
  join_all(network, 0.2, 60);
  for (const Contact& member : network.members()) {
    CHECK(chord_at(network, member.address).successors() == following(network, member.address, 8));
    const auto& before = chord_at(network, member.address).predecessors();
    REQUIRE(!before.empty());
    CHECK(following(network, before.front().address, 1).front().address == member.address);
  }
}

// Invariant 7 with the fault "all successors but one crash".
TEST_CASE("chord: when all of a node's successors but the last crash at once the ring closes again") {
  OverlayNetwork network(options_for(OverlayKind::kChord), 60, Rng(4));
  join_all(network, 0.2, 60);
  const Address struck = network.members()[17].address;
  const std::vector<Contact> successors = chord_at(network, struck).successors();
  for (std::size_t i = 0; i + 1 < successors.size(); ++i) network.stop(successors[i].address, false);
  CHECK(network.members().size() == 53);
  run_for(network, 40);
  CHECK(cycle_length(network) == 53);
  for (const Contact& member : network.members())
    CHECK(chord_at(network, member.address).successors() == following(network, member.address, 8));
}

TEST_CASE("pastry: at rest each leaf set is the numerically nearest on both sides, also after crashes") {
  OverlayNetwork network(options_for(OverlayKind::kPastry), 60, Rng(5));
  join_all(network, 0.2, 60);
  for (int turn = 0; turn < 2; ++turn) {
    for (const Contact& member : network.members()) {
      const std::vector<Contact> after = following(network, member.address, network.size());
      std::set<Address> expected;
      for (std::size_t i = 0; i < 8; ++i) {
        expected.insert(after[i].address);
        expected.insert(after[after.size() - 1 - i].address);
      }
      std::set<Address> leaves;
      for (const Contact& leaf : pastry_leaves(network, member.address)) leaves.insert(leaf.address);
      CHECK(leaves == expected);
    }
    for (Address address = 10; turn == 0 && address < 15; ++address) network.stop(address, false);
    run_for(network, 60);
  }
}

// Invariant 9.
TEST_CASE("overlay: with three holders a value survives two that crash at once, and has three again") {
  for (const OverlayKind kind : kAllKinds) {
    OverlayNetwork network(options_for(kind), 50, Rng(6));
    join_all(network, 0.2, 40);
    const std::string name = to_string(kind);
    CAPTURE(name);
    Rng rng(1);
    for (int turn = 0; turn < 4; ++turn) {
      const Id key = rng.next_u64();
      const Address publisher = network.members()[rng.below(network.members().size())].address;
      network.publish(publisher, {.key = key, .bytes = bytes_of("kept")});
      run_for(network, 3);
      CHECK(holders_of(network, key) == best(kind, network, key, 3));
      const auto owners = ranking(kind, network.members(), key);
      // The first two, the last two, or the first and the last of the three holders crash. The value is not
      // published again.
      network.node(publisher).withdraw(key, 0);
      network.stop(owners[turn == 1 ? 1 : 0].address, false);
      network.stop(owners[turn == 0 ? 1 : 2].address, false);
      run_for(network, 40);
      CHECK(holders_of(network, key) == best(kind, network, key, 3));
      const Address from = network.members()[rng.below(network.members().size())].address;
      const LookupResult found = look_up(network, from, key);
      REQUIRE(found.ok);
      CHECK(text_of(found.values.at(0)) == "kept");
    }
  }
}

TEST_CASE("overlay: a value goes to nodes that come nearer, and is not kept by those it does not belong to") {
  for (const OverlayKind kind : kAllKinds) {
    OverlayNetwork network(options_for(kind), 60, Rng(7));
    const std::string name = to_string(kind);
    CAPTURE(name);
    for (Address address = 0; address < 10; ++address) {
      network.start(address);
      run_for(network, 1);
    }
    Rng rng(2);
    std::vector<Id> keys;
    for (int i = 0; i < 20; ++i) {
      keys.push_back(rng.next_u64());
      network.publish(static_cast<Address>(i % 10), {.key = keys.back(), .bytes = bytes_of("v")});
    }
    for (Address address = 10; address < 60; ++address) {
      network.start(address);
      run_for(network, 0.5);
    }
    run_for(network, 25);
    for (const Id key : keys) CHECK(holders_of(network, key) == best(kind, network, key, 3));
  }
}

TEST_CASE("overlay: who leaves with a goodbye hands over what it alone would hold") {
  for (const OverlayKind kind : kAllKinds) {
    OverlayOptions options = options_for(kind);
    options.replication = 1;
    OverlayNetwork network(options, 30, Rng(8));
    const std::string name = to_string(kind);
    CAPTURE(name);
    join_all(network, 0.2, 40);
    Rng rng(3);
    for (int turn = 0; turn < 5; ++turn) {
      const Id key = rng.next_u64();
      const auto owners = ranking(kind, network.members(), key);
      network.publish(owners.back().address, {.key = key, .bytes = bytes_of("v")});
      run_for(network, 2);
      network.stop(owners.front().address, true);
      run_for(network, 1);
      CHECK(holders_of(network, key).contains(owners[1].address));
    }
  }
}

TEST_CASE("overlay: a value expires three times T_rep after its last publication, wherever it lies") {
  for (const OverlayKind kind : kAllKinds) {
    OverlayOptions options = options_for(kind);
    options.republish = 10;
    OverlayNetwork network(options, 20, Rng(9));
    join_all(network, 0.2, 20);
    network.publish(3, {.key = 42, .bytes = bytes_of("v")});
    run_for(network, 100);  // published several times
    CHECK(look_up(network, 5, 42, 2).ok);
    network.stop(3, false);
    run_for(network, 18);
    CHECK(look_up(network, 5, 42, 1).ok);
    run_for(network, 12);
    CHECK(!look_up(network, 5, 42, 2).ok);
    CHECK(holders_of(network, 42).empty());
  }
}

TEST_CASE("overlay: several values may lie under one key, and a later one replaces that of its own slot") {
  for (const OverlayKind kind : kAllKinds) {
    OverlayNetwork network(options_for(kind), 20, Rng(10));
    network.start_static(everybody(20));
    network.publish(1, {.key = 7, .slot = 1, .sequence = 1, .bytes = bytes_of("one")});
    network.publish(2, {.key = 7, .slot = 2, .sequence = 1, .bytes = bytes_of("two")});
    run_for(network, 3);
    network.publish(1, {.key = 7, .slot = 1, .sequence = 2, .bytes = bytes_of("uno")});
    run_for(network, 3);
    PublishResult late;
    network.publish(5, {.key = 7, .slot = 1, .sequence = 1, .bytes = bytes_of("old")},
                    [&](const PublishResult& result) { late = result; });
    run_for(network, 3);
    CHECK(late.holders == 0);
    CHECK(late.refused == 3);
    const LookupResult found = look_up(network, 9, 7, 3);
    REQUIRE(found.values.size() == 2);
    CHECK(text_of(found.values[0]) == "uno");
    CHECK(text_of(found.values[1]) == "two");
  }
}

TEST_CASE("overlay: who comes back has forgotten everything but its id, and becomes a member again") {
  for (const OverlayKind kind : kAllKinds) {
    OverlayNetwork network(options_for(kind), 30, Rng(11));
    const std::string name = to_string(kind);
    CAPTURE(name);
    join_all(network, 0.2, 30);
    const Id id = network.node(4).self().id;
    for (int turn = 0; turn < 3; ++turn) {
      network.stop(4, turn == 1);
      CHECK(network.node(4).routing().contacts() == 0);
      CHECK(!network.node(4).member());
      run_for(network, turn == 2 ? 0.3 : 20);  // the last time before any node notices
      network.start(4);
      run_for(network, 30);
      CHECK(network.node(4).member());
      CHECK(network.node(4).self().id == id);
    }
    CHECK(network.members().size() == 30);
    network.publish(2, {.key = id, .bytes = bytes_of("mine")});
    run_for(network, 3);
    CHECK(look_up(network, 9, id, 3).owner.address == 4);
  }
}

// The fault "message loss".
TEST_CASE("overlay: with one message in a hundred lost, nearly all lookups succeed and no ring breaks") {
  for (const OverlayKind kind : kAllKinds) {
    OverlayOptions options = options_for(kind);
    options.loss = 0.01;
    OverlayNetwork network(options, 60, Rng(12));
    const std::string name = to_string(kind);
    CAPTURE(name);
    join_all(network, 0.2, 60);
    CHECK(network.members().size() == 60);
    std::vector<Id> keys;
    Rng rng(4);
    for (int i = 0; i < 30; ++i) {
      keys.push_back(rng.next_u64());
      network.publish(static_cast<Address>(2 * i), {.key = keys.back(), .bytes = bytes_of("v")});
    }
    run_for(network, 5);
    CHECK(good_lookups(network, keys, 400) >= 392);
  }
}

TEST_CASE("overlay: under churn lookups keep succeeding") {
  for (const OverlayKind kind : kAllKinds) {
    OverlayNetwork network(options_for(kind), 100, Rng(13));
    const std::string name = to_string(kind);
    CAPTURE(name);
    join_all(network, 0.2, 30);
    std::vector<Id> keys;
    Rng rng(5);
    for (int i = 0; i < 30; ++i) {
      keys.push_back(rng.next_u64());
      network.publish(static_cast<Address>(i), {.key = keys.back(), .bytes = bytes_of("v")});
    }
    // Every 2 seconds, one of 70 nodes toggles between up and down; publishers stay up.
    std::size_t good = 0;
    for (int round = 0; round < 100; ++round) {
      const auto going = static_cast<Address>(30 + rng.below(70));
      if (network.up(going))
        network.stop(going, rng.below(5) == 0);
      else
        network.start(going);
      good += good_lookups(network, keys, 1);
    }
    CHECK(good >= 97);
  }
}
