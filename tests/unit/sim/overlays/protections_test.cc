// Each protection against hostile nodes by itself.
#include <doctest/doctest.h>

#include "dht/overlays/search.h"
#include "tests/unit/sim/overlays/networks.h"

namespace fedge::sim {
namespace {

using namespace dht;

OverlayOptions kademlia(const Protections& protections) {
  OverlayOptions options = options_for(OverlayKind::kKademlia);
  options.protections = protections;
  return options;
}

const Kademlia& tables(const OverlayNetwork& network, Address node) {
  return static_cast<const Kademlia&>(network.node(node).routing());
}

bool knows(const OverlayNetwork& network, Address node, const Contact& contact) {
  for (unsigned bucket = 0; bucket < kIdBits; ++bucket)
    for (const Contact& known : tables(network, node).bucket(bucket))
      if (known == contact) return true;
  return false;
}

Message ping(const Contact& from, const Contact& to) {
  Message message;
  message.from = from;
  message.to = to;
  message.kind = Kind::kPing;
  return message;
}

Value value_of(Id key, std::uint64_t sequence, const std::string& text) {
  return {
      .key = key, .slot = 1, .sequence = sequence, .expires = Time(seconds(1e6)), .bytes = bytes_of(text)};
}

TEST_CASE("row 61: bound ids: a contact with an id that is not its own comes into no table") {
  for (const bool bound : {false, true}) {
    CAPTURE(bound);
    OverlayNetwork network(kademlia({.bound_ids = bound}), 4, Rng(1));
    network.start_static({0, 1, 2});
    const Contact liar{network.node(0).self().id ^ 5, 3};
    network.inject(ping(liar, network.node(0).self()));
    run_for(network, 1);
    CHECK(knows(network, 0, liar) == !bound);
  }
}

TEST_CASE("row 61: bound ids: contacts in a reply that lie about their ids are not asked") {
  for (const bool bound : {false, true}) {
    CAPTURE(bound);
    OverlayNetwork network(kademlia({.bound_ids = bound}), 60, Rng(2));
    network.start_static(everybody(60));
    const Id key = key_of("something");
    const Address liar = ranking(OverlayKind::kKademlia, network.members(), key).front().address;
    network.set_answer(liar, [&](const Message& request, Message& reply, const auto& honest) {
      if (!honest(request, reply)) return false;
      reply.contacts = {{key ^ 1, 7}, {key ^ 2, 8}};
      reply.routed = 2;
      return true;
    });
    std::size_t asked_by_false_id = 0;
    network.watch([&](const Message& message) {
      if (!message.reply && network.node(message.to.address).self() != message.to) ++asked_by_false_id;
    });
    look_up(network, ranking(OverlayKind::kKademlia, network.members(), key).back().address, key);
    CHECK((asked_by_false_id > 0) == !bound);
  }
}

TEST_CASE(
    "row 61: a node that is not who was asked for is as good as silent, and a look-up ends all the same") {
  OverlayNetwork network(kademlia({}), 40, Rng(13));
  network.start_static(everybody(40));
  const Id key = key_of("something");
  for (Address node = 1; node < 40; ++node)
    network.set_answer(node, [&](const Message& request, Message& reply, const auto& honest) {
      if (!honest(request, reply)) return false;
      for (Contact& contact : reply.contacts) contact.id = key ^ contact.address;
      return true;
    });
  const LookupResult found = look_up(network, 0, key);
  CHECK_FALSE(found.ok);
  CHECK(found.timeouts > 0);
}

TEST_CASE("bound ids: who answers in another's place is as good as silent") {
  OverlayNetwork network(kademlia({.bound_ids = true}), 30, Rng(3));
  network.start_static(everybody(30));
  const Id key = key_of("something");
  network.publish(29, {.key = key, .slot = 1, .sequence = 1, .bytes = bytes_of("right")});
  run_for(network, 5);
  for (Address node = 0; node < 30; ++node)
    if (holders_of(network, key).count(node) == 0)
      network.set_answer(node, [&](const Message& request, Message& reply, const auto&) {
        reply.from = {request.to.id ^ 1, request.to.address};
        reply.values = {value_of(key, 9, "wrong")};
        return true;
      });
  Address reader = 0;
  while (holders_of(network, key).count(reader) != 0) ++reader;
  network.set_answer(reader, nullptr);
  const LookupResult found = look_up(network, reader, key);
  REQUIRE(found.ok);
  CHECK(text_of(found.values.front()) == "right");
}

TEST_CASE("row 58: groups: one of a group of addresses in a bucket, and in a search") {
  constexpr std::size_t kNodes = 200;
  for (const std::size_t per_group : {0U, 1U, 2U}) {
    CAPTURE(per_group);
    NetworkSetup setup;
    for (std::size_t i = 0; i < kNodes; ++i)
      setup.identities.groups.push_back(static_cast<std::uint32_t>(i % 7));
    OverlayNetwork network(kademlia({.per_group = per_group}), kNodes, Rng(4), setup);
    network.start_static(everybody(kNodes));
    run_for(network, 30);
    std::size_t most = 0;
    for (Address node = 0; node < kNodes; ++node)
      for (unsigned bucket = 0; bucket < kIdBits; ++bucket) {
        std::map<std::uint32_t, std::size_t> count;
        for (const Contact& contact : tables(network, node).bucket(bucket))
          most = std::max(most, ++count[contact.address % 7]);
      }
    if (per_group == 0)
      CHECK(most > 2);
    else
      CHECK(most == per_group);
    std::map<Address, std::size_t> asked;
    network.watch([&](const Message& message) {
      if (message.purpose == Purpose::kLookup && !message.reply) ++asked[message.to.address % 7];
    });
    look_up(network, 3, key_of("nothing there"));
    for (const auto& [group, times] : asked) {
      CAPTURE(group);
      if (per_group > 0) CHECK(times <= per_group);
    }
    CHECK(!asked.empty());
  }
}

TEST_CASE("row 58: disjoint paths: nobody is asked twice, and on perfect tables the closest are found") {
  for (const std::size_t paths : {2U, 3U, 5U}) {
    CAPTURE(paths);
    OverlayNetwork network(kademlia({.paths = paths}), 300, Rng(5));
    network.start_static(everybody(300));
    Rng rng(6);
    for (int i = 0; i < 20; ++i) {
      std::map<Address, std::size_t> asked;
      network.watch([&](const Message& message) {
        if (message.purpose == Purpose::kLookup && !message.reply) ++asked[message.to.address];
      });
      const Id key = rng.next_u64();
      const LookupResult found = look_up(network, static_cast<Address>(rng.below(300)), key, 5);
      for (const auto& [address, times] : asked) CHECK(times == 1);
      CHECK(found.owner == network.owner(key));
      CHECK(!found.ok);
    }
  }
}

TEST_CASE("row 58: disjoint paths: one that a hostile node has in its hands does not spoil the others") {
  const XorSearchOptions options{.alpha = 3, .width = 6};
  const auto search = make_disjoint_search(options, 2);
  const Contact self{1ULL << 60, 0};
  const Contact good{1ULL << 50, 1};
  const Contact bad{1ULL << 51, 2};
  const std::vector<Contact> first = {good, bad};
  search->start({.target = 0, .self = self, .goal = Goal::kAllValues}, Found::kCloser, first);
  std::size_t asked = 0;
  while (const auto contact = search->next()) {
    REQUIRE(++asked < 300);
    Message reply;
    reply.from = *contact;
    reply.reply = true;
    if (*contact == good) {
      reply.values = {value_of(0, 1, "right")};
    } else {  // returns ever more hostile contacts, all of them nearer
      for (Id id = 1; id <= 6; ++id)
        reply.contacts.push_back({contact->id / 2 + id, static_cast<Address>(100 * asked + id)});
      reply.routed = 6;
    }
    search->answered(reply);
  }
  CHECK(search->done());
  REQUIRE(search->outcome().values.size() == 1);
  CHECK(search->outcome().holder == good);
}

TEST_CASE("row 59: an old contact that answers keeps its place in a full bucket, unless newcomers take it") {
  for (const bool keep_old : {true, false}) {
    CAPTURE(keep_old);
    OverlayOptions options = kademlia({.keep_old = keep_old});
    options.kademlia.k = 4;
    OverlayNetwork network(options, 100, Rng(7));
    network.start_static(everybody(90));
    const Contact self = network.node(0).self();
    const unsigned far = kIdBits - 1;
    const auto before = tables(network, 0).bucket(far);
    const std::set<Id> old = [&] {
      std::set<Id> ids;
      for (const Contact& contact : before) ids.insert(contact.id);
      return ids;
    }();
    REQUIRE(old.size() == 4);
    for (Address newcomer = 90; newcomer < 100; ++newcomer) {
      const Contact from{(self.id ^ (Id{1} << far)) + newcomer, newcomer};
      network.inject(ping(from, self));
    }
    run_for(network, 2);
    std::size_t stayed = 0;
    for (const Contact& contact : tables(network, 0).bucket(far)) stayed += old.count(contact.id);
    CHECK(stayed == (keep_old ? 4 : 0));
  }
}

TEST_CASE(
    "row 60: all holders are asked: the latest value of one is found though others have an earlier one") {
  for (const OverlayKind kind : kAllKinds) {
    CAPTURE(to_string(kind));
    for (const bool all : {false, true}) {
      CAPTURE(all);
      OverlayOptions options = options_for(kind);
      options.protections.read_all = all;
      options.kademlia.cache = false;
      options.repair = 1e6;  // no repair brings the values to the owners
      OverlayNetwork network(options, 60, Rng(8));
      network.start_static(everybody(60));
      std::size_t found = 0;
      for (int i = 0; i < 12; ++i) {
        const Id key = key_of("key " + std::to_string(i));
        network.publish(0, {.key = key, .slot = 1, .sequence = 1, .bytes = bytes_of("old")});
        run_for(network, 5);
        const std::set<Address> holders = holders_of(network, key);
        REQUIRE(holders.size() == 3);
        network.node(*std::next(holders.begin(), i % 3))
            .store()
            .offer(value_of(key, 2, "new"), network.now());
        Address reader = 1;
        while (holders.count(reader) != 0) ++reader;
        for (const Value& value : look_up(network, reader, key).values)
          if (value.sequence == 2) ++found;
      }
      if (all)
        CHECK(found == 12);
      else
        CHECK(found < 12);
    }
  }
}

TEST_CASE("row 60, row 61: tokens: a stranger gets one and nothing else, in no more bytes than it has sent") {
  for (const OverlayKind kind : kAllKinds) {
    CAPTURE(to_string(kind));
    OverlayOptions options = options_for(kind);
    options.protections.tokens = true;
    OverlayNetwork network(options, 40, Rng(9));
    network.start_static(everybody(40));
    const Id key = key_of("large");
    network.publish(0, {.key = key, .slot = 1, .sequence = 1, .bytes = bytes_of(std::string(3000, 'x'))});
    run_for(network, 5);
    const Address holder = *holders_of(network, key).begin();
    const Address victim = holder == 5 ? 6 : 5;
    Message request;
    request.from = network.node(victim).self();  // the request comes from another node
    request.to = network.node(holder).self();
    request.kind = Kind::kFind;
    request.key = key;
    request.want_values = true;
    std::size_t replies = 0;
    network.watch([&](const Message& message) {
      if (message.to.address != victim || !message.reply || message.rpc != 0) return;
      ++replies;
      CHECK(message.bytes() <= request.bytes());
      CHECK(message.values.empty());
    });
    network.inject(request);
    Message store;
    store.from = request.from;
    store.to = request.to;
    store.kind = Kind::kStore;
    store.token = network.node(holder).token_of(victim + 1);  // the token of another address
    store.values = {value_of(key_of("put"), 1, "put")};
    network.inject(store);
    run_for(network, 2);
    CHECK(replies == 2);
    CHECK(holders_of(network, key_of("put")).empty());
    store.token = network.node(holder).token_of(victim);
    network.inject(store);
    run_for(network, 2);
    CHECK(holders_of(network, key_of("put")).count(holder) == 1);
  }
}

TEST_CASE("tokens: nodes that join with them find each other and what is published") {
  for (const OverlayKind kind : kAllKinds) {
    CAPTURE(to_string(kind));
    OverlayOptions options = options_for(kind);
    options.protections.tokens = true;
    OverlayNetwork network(options, 40, Rng(10));
    join_all(network, 1, 40);
    CHECK(network.members().size() == 40);
    std::size_t found = 0;
    for (int i = 0; i < 20; ++i) {
      const Id key = key_of("key " + std::to_string(i));
      network.publish(static_cast<Address>(i),
                      {.key = key, .slot = 1, .sequence = 1, .bytes = bytes_of("x")});
      run_for(network, 5);
      if (look_up(network, static_cast<Address>(39 - i), key).ok) ++found;
    }
    CHECK(found == 20);
    const NetworkCounters& counters = network.counters();
    CHECK(counters.messages_sent == counters.messages_received + counters.messages_lost + counters.in_flight);
  }
}

TEST_CASE("tokens: who asks for one again and again is as good as silent") {
  OverlayOptions options = kademlia({.tokens = true});
  OverlayNetwork network(options, 20, Rng(11));
  network.start_static(everybody(20));
  std::size_t asked = 0;
  for (Address node = 1; node < 20; ++node)
    network.set_answer(node, [&](const Message& request, Message& reply, const auto&) {
      ++asked;
      reply.token = request.token + 1;
      reply.retry = true;
      return true;
    });
  CHECK_FALSE(look_up(network, 0, key_of("something"), 10).ok);
  CHECK(asked > 0);
  CHECK(asked < 400);
}

TEST_CASE("row 61: a message that is passed on goes no farther than 128 hops") {
  for (const OverlayKind kind : {OverlayKind::kChord, OverlayKind::kPastry}) {
    CAPTURE(to_string(kind));
    OverlayOptions options = options_for(kind);
    options.recursive = true;
    OverlayNetwork network(options, 300, Rng(12));
    network.start_static(everybody(300));
    for (const std::uint16_t hops : {std::uint16_t{1}, std::uint16_t{128}, std::uint16_t{65535}}) {
      CAPTURE(hops);
      std::size_t passed_on = 0;
      network.watch([&](const Message& message) {
        if (message.kind == Kind::kRoute && message.rpc == 0 && message.to.address != 0) ++passed_on;
      });
      Message route;
      route.from = route.origin = network.node(1).self();
      route.to = network.node(0).self();
      route.kind = Kind::kRoute;
      route.one_way = true;
      route.hops = hops;
      route.key = ranking(kind, network.members(), route.to.id)[150].id;  // far from the receiver
      network.inject(route);
      run_for(network, 2);
      CHECK((passed_on > 0) == (hops == 1));
    }
  }
}

}  // namespace
}  // namespace fedge::sim
