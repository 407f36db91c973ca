#include "swarm/tracker.h"

#include <doctest/doctest.h>

#include <map>
#include <set>

namespace fedge::swarm {
namespace {

constexpr protocol::ObjectId kObject{1};
constexpr protocol::ObjectId kOther{2};

protocol::SwarmMember member(std::uint32_t client, bool listens = true) {
  protocol::SwarmMember result;
  result.client = ClientId(client);
  result.key.bytes[0] = static_cast<std::uint8_t>(client);
  if (listens) result.address = "192.0.2.7:" + std::to_string(1000 + client);
  return result;
}

// The clients' view: with whom each client exchanges each object.
struct Clients {
  std::map<ClientId, std::map<protocol::ObjectId, std::set<ClientId>>> neighbours;
  void hear(const std::vector<Tracker::Tell>& tells) {
    for (const auto& [to, message] : tells) {
      auto& mine = neighbours[to][message.object];
      for (const ClientId gone : message.leave) CHECK(mine.erase(gone) == 1);
      for (const auto& joined : message.join) CHECK(mine.insert(joined.client).second);
    }
  }
  bool mutual(const protocol::ObjectId& object) {
    for (auto& [client, objects] : neighbours)
      for (const ClientId other : objects[object])
        if (!neighbours[other][object].contains(client)) return false;
    return true;
  }
};

}  // namespace

TEST_CASE("tracker: newcomers and their neighbours are told of each other, as many as they may have") {
  Tracker tracker;
  Clients clients;
  for (std::uint32_t i = 0; i < 50; ++i)
    clients.hear(tracker.join(kObject, member(i), 10, Rng(3).fork("join", i)));
  CHECK(clients.mutual(kObject));
  for (std::uint32_t i = 10; i < 50; ++i) CHECK(clients.neighbours[ClientId(i)][kObject].size() >= 10);
  std::size_t links = 0;
  for (const auto& [client, objects] : clients.neighbours) links += objects.at(kObject).size();
  CHECK(links / 2 == 10 * 9 / 2 + 10 * 40);
}

TEST_CASE("tracker: a neighbour's key and address are those that it joined with, and newcomers hear last") {
  Tracker tracker;
  CHECK(tracker.join(kObject, member(1), 10, Rng(3)).empty());
  const auto tells = tracker.join(kObject, member(2), 10, Rng(3));
  REQUIRE(tells.size() == 2);
  CHECK(tells[0].to == ClientId(1));
  CHECK(tells[0].message.join == std::vector{member(2)});
  CHECK(tells[1].to == ClientId(2));
  CHECK(tells[1].message.join == std::vector{member(1)});
}

TEST_CASE("tracker: two that accept no links are never brought together") {
  Tracker tracker;
  Clients clients;
  for (std::uint32_t i = 0; i < 20; ++i)
    clients.hear(tracker.join(kObject, member(i, i % 4 == 0), 10, Rng(3).fork("join", i)));
  CHECK(clients.mutual(kObject));
  for (auto& [client, objects] : clients.neighbours)
    for (const ClientId other : objects[kObject]) CHECK((client.value() % 4 == 0 || other.value() % 4 == 0));
}

TEST_CASE(
    "tracker: who leaves is taken from its neighbours, of all objects, and who joins again is told anew") {
  Tracker tracker;
  Clients clients;
  for (const auto& object : {kObject, kOther})
    for (std::uint32_t i = 0; i < 5; ++i) clients.hear(tracker.join(object, member(i), 10, Rng(3)));
  const auto left = tracker.leave(ClientId(2));
  CHECK(left.over.empty());
  clients.hear(left.tells);
  clients.neighbours.erase(ClientId(2));
  for (auto& [client, objects] : clients.neighbours)
    for (const auto& object : {kObject, kOther}) CHECK(objects[object].size() == 3);
  clients.hear(tracker.join(kObject, member(2), 10, Rng(3)));
  CHECK(clients.neighbours[ClientId(2)][kObject].size() == 4);
  // The client joins again, for example after losing its links.
  const auto again = tracker.join(kObject, member(2), 10, Rng(3));
  clients.neighbours[ClientId(2)].clear();
  clients.hear(again);
  CHECK(clients.neighbours[ClientId(2)][kObject].size() == 4);
  CHECK(clients.mutual(kObject));
  CHECK(tracker.leave(ClientId(77)).tells.empty());
}

TEST_CASE("tracker: a swarm lasts until the last task is done or gone, and who is done still gives") {
  Tracker tracker;
  for (std::uint32_t i = 0; i < 3; ++i) (void)tracker.join(kObject, member(i), 10, Rng(3));
  (void)tracker.join(kObject, member(2), 10, Rng(3));  // a second task with the same model
  CHECK_FALSE(tracker.done(kObject, ClientId(0)));
  CHECK_FALSE(tracker.done(kObject, ClientId(0)));  // the client has no other object
  CHECK_FALSE(tracker.done(kOther, ClientId(1)));
  CHECK_FALSE(tracker.done(kObject, ClientId(7)));
  const auto tells = tracker.join(kObject, member(4), 10, Rng(3));
  CHECK(tells.size() == 4);  // the neighbours include clients that are done
  CHECK_FALSE(tracker.done(kObject, ClientId(2)));
  CHECK_FALSE(tracker.done(kObject, ClientId(4)));
  CHECK_FALSE(tracker.done(kObject, ClientId(1)));
  SUBCASE("done") { CHECK(tracker.done(kObject, ClientId(2))); }
  SUBCASE("gone") { CHECK(tracker.leave(ClientId(2)).over == std::vector{kObject}); }
  CHECK_FALSE(tracker.has(kObject));
}

}  // namespace fedge::swarm
