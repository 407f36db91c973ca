// The values of one Kademlia node among eight, whose first 3 bits are the nodes' numbers.
#include "dht/overlays/values/publisher.h"

#include <doctest/doctest.h>

#include <deque>

#include "core/rng.h"

namespace fedge::dht {
namespace {

constexpr Id place(Id node) { return node << 61; }
constexpr Id kKeyOf5 = place(5) + 1;  // nearest by XOR: 5, 4, 7

struct Outbox final : PublisherHost {
  struct Asked {
    OpenRequest request;
    Message message;
  };
  Time now() const override { return time; }
  Message& ask(const OpenRequest& request, Kind kind, Purpose purpose) override {
    asked.push_back({request, {}});
    asked.back().message.kind = kind;
    asked.back().message.purpose = purpose;
    return asked.back().message;
  }
  Message& tell(const Contact& to, Kind kind, Purpose) override {
    told.emplace_back().to = to;
    told.back().kind = kind;
    return told.back();
  }
  void find_holders(Id key, Purpose, std::uint32_t tag) override { searches.emplace_back(key, tag); }
  void published(const PublishResult& result) override { results.push_back(result); }

  std::vector<Address> receivers() const {
    std::vector<Address> addresses;
    for (const Asked& one : asked) addresses.push_back(one.request.to.address);
    return addresses;
  }

  Time time{};
  std::deque<Asked> asked;
  std::deque<Message> told;
  std::vector<std::pair<Id, std::uint32_t>> searches;
  std::vector<PublishResult> results;
};

struct EightNodes {
  explicit EightNodes(Address self) : identity{place(self), self} {
    for (Address i = 0; i < 8; ++i) everybody.push_back({place(i), i});
    options.kind = OverlayKind::kKademlia;
    options.repair = 1;
    Rng rng(1);
    routing = make_routing(identity, options, {}, identities);
    routing->fill(everybody, rng);
    publisher.emplace(self, options, *routing, later_wins);
  }
  std::vector<Contact> contacts(const std::vector<Address>& addresses) const {
    std::vector<Contact> result;
    for (const Address address : addresses) result.push_back(everybody[address]);
    return result;
  }
  Value value(std::uint64_t sequence = 1) const {
    return {.key = kKeyOf5, .slot = 0, .sequence = sequence, .expires = Time(seconds(1000)), .bytes = {}};
  }
  // Another node stores the value here, and names these holders.
  bool give(const std::vector<Address>& holders) {
    Message message;
    message.values.push_back(value());
    message.contacts = contacts(holders);
    return publisher->take(message, host.time);
  }

  Contact identity;
  OverlayOptions options;
  Identities identities;
  std::vector<Contact> everybody;
  std::unique_ptr<Routing> routing;
  std::optional<Publisher> publisher;
  Outbox host;
};

}  // namespace

TEST_CASE("publisher: a value goes to r nodes, and the result counts those that stored it") {
  EightNodes nodes(0);
  nodes.publisher->publish({.key = kKeyOf5, .slot = 0, .sequence = 1}, 9, true, nodes.host);
  REQUIRE(nodes.host.searches.size() == 1);
  CHECK(nodes.host.searches[0].first == kKeyOf5);
  nodes.publisher->found(nodes.host.searches[0].second, nodes.contacts({5, 4, 7, 6}), nodes.host);
  CHECK(nodes.host.receivers() == std::vector<Address>{5, 4, 7});
  const auto asked = nodes.host.asked;
  nodes.host.time = Time(seconds(2));
  nodes.publisher->stored(asked[0].request, true, true, nodes.host);
  nodes.publisher->stored(asked[1].request, true, false, nodes.host);
  CHECK(nodes.host.results.empty());
  nodes.publisher->stored(asked[2].request, false, false, nodes.host);
  REQUIRE(nodes.host.results.size() == 1);
  CHECK(nodes.host.results[0].operation == 9);
  CHECK(nodes.host.results[0].holders == 1);
  CHECK(nodes.host.results[0].refused == 1);
  CHECK(nodes.host.results[0].latency == seconds(2));
}

TEST_CASE("publisher: a value that reached nobody is published again in the next round") {
  EightNodes nodes(0);
  nodes.publisher->publish({.key = kKeyOf5}, 1, true, nodes.host);
  nodes.publisher->found(nodes.host.searches[0].second, {}, nodes.host);
  CHECK(nodes.host.results.at(0).holders == 0);
  nodes.publisher->tick(nodes.host);
  CHECK(nodes.host.searches.size() == 2);
  nodes.publisher->found(nodes.host.searches[1].second, nodes.contacts({5}), nodes.host);
  nodes.publisher->stored(nodes.host.asked[0].request, true, true, nodes.host);
  nodes.publisher->tick(nodes.host);
  CHECK(nodes.host.searches.size() == 2);
}

TEST_CASE("publisher: a node that is not a member publishes at the first tick, unless it withdraws") {
  for (const bool withdraws : {false, true}) {
    EightNodes nodes(0);
    nodes.publisher->publish({.key = kKeyOf5, .slot = 3}, 4, false, nodes.host);
    CHECK(nodes.host.searches.empty());
    if (withdraws) nodes.publisher->withdraw(kKeyOf5, 3);
    nodes.publisher->tick(nodes.host);
    CHECK(nodes.host.searches.size() == (withdraws ? 0 : 1));
  }
}

TEST_CASE("publisher: answers from before a restart are ignored") {
  EightNodes nodes(0);
  nodes.publisher->publish({.key = kKeyOf5}, 1, true, nodes.host);
  nodes.publisher->found(nodes.host.searches[0].second, nodes.contacts({5}), nodes.host);
  nodes.publisher->clear();
  nodes.publisher->stored(nodes.host.asked[0].request, true, true, nodes.host);
  CHECK(nodes.host.results.empty());
  nodes.publisher->tick(nodes.host);
  CHECK(nodes.host.searches.size() == 1);
}

TEST_CASE("publisher: a holder sends its values to responsible nodes that lack them, and keeps its own") {
  EightNodes nodes(5);
  REQUIRE(nodes.give({5, 4}));
  nodes.publisher->tick(nodes.host);
  CHECK(nodes.host.receivers() == std::vector<Address>{7});
  nodes.publisher->pushed(nodes.host.asked[0].request);
  nodes.publisher->tick(nodes.host);
  CHECK(nodes.host.asked.size() == 1);
  CHECK(nodes.publisher->store().values().size() == 1);
}

TEST_CASE("publisher: a node that is not responsible drops a value once every responsible node has it") {
  EightNodes nodes(2);
  REQUIRE(nodes.give({2}));
  nodes.publisher->tick(nodes.host);
  CHECK(nodes.host.receivers() == std::vector<Address>{5, 4, 7});
  for (int i = 0; i < 3; ++i) {
    CHECK(nodes.publisher->store().values().size() == 1);
    nodes.publisher->pushed(nodes.host.asked[static_cast<std::size_t>(i)].request);
  }
  CHECK(nodes.publisher->store().values().empty());
}

TEST_CASE("publisher: a cached copy is not repaired, and does not replace a held value's holders") {
  EightNodes nodes(2);
  REQUIRE(nodes.give({}));
  nodes.publisher->tick(nodes.host);
  CHECK(nodes.host.asked.empty());
  REQUIRE(nodes.give({2, 5, 4}));
  REQUIRE(nodes.give({}));
  nodes.publisher->tick(nodes.host);
  CHECK(nodes.host.receivers() == std::vector<Address>{7});
}

TEST_CASE("publisher: a leaving node transfers its values to responsible nodes that lack them") {
  EightNodes nodes(5);
  REQUIRE(nodes.give({5, 4}));
  nodes.publisher->leave(nodes.host);
  REQUIRE(nodes.host.told.size() == 2);
  CHECK(nodes.host.told[0].to.address == 7);
  CHECK(nodes.host.told[1].to.address == 6);
  CHECK(nodes.host.told[1].values.size() == 1);
}

}  // namespace fedge::dht
