// The coordinator's address and key change: a real client daemon beside a coordinator that the test scripts.
#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <string>
#include <thread>
#include <utility>

#include "client/discovery/move.h"
#include "tests/unit/client/secure_turn.h"

namespace fedge::client {
namespace {

using site::coordinator_key;
using site::kFirst;
using site::kSecond;
using site::Site;

SecretKey contact_key(std::uint8_t number) {
  std::array<std::uint8_t, 32> seed{};
  seed[0] = number;
  return SecretKey::from_seed(seed);
}

Membership stored(const Site& site) {
  const auto membership = read_membership(site.state.path());
  REQUIRE_MESSAGE(membership, membership.error().message);
  return *membership;
}

std::ptrdiff_t kept(const Site& site) {
  return std::ranges::count_if(site.heard, [](const protocol::Message& message) {
    return std::holds_alternative<protocol::ContactKept>(message);
  });
}

std::ptrdiff_t said_parts(const Site& site, const std::string& part) {
  return std::ranges::count_if(site.said,
                               [&](const std::string& line) { return line.find(part) != std::string::npos; });
}

// A daemon without runs, connected.
void connect(Site& site) {
  site.going = {};
  site.begin();
  REQUIRE(site.run_until([&] { return site.greeted; }));
}

// The scripted coordinator holds this key from now on, and ends the connection.
void hold(Site& site, const SecretKey& key) {
  site.listener->set_identity(*protocol::make_tls_identity(key));
  site.greeted = false;
  site.link->close("the key was replaced");
}

void announce(Site& site, const SecretKey& key) {
  const auto before = kept(site);
  site.link->send(protocol::Contact{.next_key = key.public_key()});
  REQUIRE(site.run_until([&] { return kept(site) > before; }));
}

}  // namespace

TEST_CASE(
    "contact: an announced key is accepted once it is stored, and from then on the former one is refused") {
  Site site;
  const SecretKey next = contact_key(50);
  bool stored_first = false;
  site.hears_too = [&](const protocol::Message& message) {
    if (std::holds_alternative<protocol::ContactKept>(message))
      stored_first = stored(site).next_key == next.public_key();
  };
  connect(site);
  announce(site, next);
  CHECK(stored_first);
  CHECK(stored(site).coordinator_key == coordinator_key().public_key());
  hold(site, next);
  REQUIRE(site.run_until([&] { return site.greeted; }));
  REQUIRE(site.run_until([&] { return stored(site).coordinator_key == next.public_key(); }));
  CHECK_FALSE(stored(site).next_key);
  // Somebody has stolen the former key, which the coordinator does not use any more.
  hold(site, coordinator_key());
  REQUIRE(site.has_said_part("the public key of the peer is " + to_hex(coordinator_key().public_key()) +
                             "; expected " + to_hex(next.public_key())));
  CHECK_FALSE(site.greeted);
  // Nor after a restart.
  site.leave();
  site.said.clear();
  site.begin();
  REQUIRE(site.has_said_part("expected " + to_hex(next.public_key())));
  CHECK_FALSE(site.greeted);
}

TEST_CASE("contact: a coordinator that knows nothing of contacts hears nothing of them") {
  Site site;
  connect(site);
  CHECK(site.features == std::vector<std::string>{protocol::kContactFeature});
  announce(site, contact_key(50));
  // An older version, as after an upgrade that was taken back.
  site.heard.clear();
  site.greeted = false;
  site.link->close("older");
  REQUIRE(site.run_until([&] { return site.greeted; }));
  site.leave();
  site.begin();
  REQUIRE(site.run_until([&] { return site.greeted; }));
  CHECK(kept(site) == 0);
  CHECK(stored(site).next_key == contact_key(50).public_key());
}

TEST_CASE("contact: what a full disk did not keep is stored later, and reported only then") {
  Site site;
  connect(site);
  const auto file = site.state.path() / "membership.json";
  const auto away = site.state.path() / "away.json";
  // Nothing can be renamed to a path at which there is a directory.
  std::filesystem::rename(file, away);
  std::filesystem::create_directory(file);
  site.link->send(protocol::Contact{.next_key = contact_key(50).public_key()});
  REQUIRE(site.has_said_part("membership.save_failed"));
  CHECK(said_parts(site, "coordinator.next_key") == 0);
  CHECK(kept(site) == 0);
  std::filesystem::remove(file);
  std::filesystem::rename(away, file);
  REQUIRE(site.has_said_part("coordinator.next_key"));
  CHECK(stored(site).next_key == contact_key(50).public_key());
  CHECK(site.run_until([&] { return kept(site) == 1; }));
}

TEST_CASE("contact: a key that was not announced, or is announced no longer, is refused") {
  Site site;
  const SecretKey next = contact_key(50);
  connect(site);
  SUBCASE("never announced") {}
  SUBCASE("withdrawn") {
    announce(site, next);
    site.link->send(protocol::Contact{});
    REQUIRE(site.run_until([&] { return !stored(site).next_key; }));
  }
  SUBCASE("replaced by another announcement") {
    announce(site, next);
    announce(site, contact_key(51));
    REQUIRE(site.run_until([&] { return stored(site).next_key == contact_key(51).public_key(); }));
  }
  hold(site, next);
  REQUIRE(site.has_said_part("the public key of the peer is " + to_hex(next.public_key())));
  CHECK_FALSE(site.greeted);
}

TEST_CASE("contact: a client follows its coordinator to another address, and forgets the former one there") {
  Site site;
  connect(site);
  const protocol::Address before = site.listener->local_address();
  auto moved = protocol::listen(site.io, *protocol::make_tls_identity(coordinator_key()),
                                {.address = {"127.0.0.1", 0}, .timeouts = {}, .on_refused = {}},
                                [&](std::shared_ptr<protocol::Link> link) { site.take(std::move(link)); });
  REQUIRE(moved);
  const protocol::Address after = (*moved)->local_address();
  const protocol::Contact contact{.addresses = {to_string(after)}};
  site.link->send(contact);
  REQUIRE(site.run_until([&] { return stored(site).coordinators.size() == 2; }));
  CHECK(stored(site).coordinators == std::vector{after, before});
  // The same again changes nothing, in whatever order the client has them.
  site.link->send(contact);
  site.listener->stop();
  site.greeted = false;
  site.link->close("moved");
  REQUIRE(site.run_until([&] { return site.greeted; }));
  CHECK(said_parts(site, "coordinator.addresses") == 1);
  site.link->send(contact);
  REQUIRE(site.run_until([&] { return stored(site).coordinators == std::vector{after}; }));
}

TEST_CASE("contact: a coordinator that changes its mind without end does not wear out the device's disk") {
  Site site;
  connect(site);
  for (std::uint8_t i = 0; i < 60; ++i)
    site.link->send(protocol::Contact{.next_key = contact_key(i).public_key()});
  REQUIRE(site.has_said_part("contact.ignored"));
  REQUIRE(site.run_until([&] { return stored(site).next_key == contact_key(15).public_key(); }));
  CHECK(kept(site) <= 16);
  CHECK(said_parts(site, "contact.ignored") == 1);
  CHECK(said_parts(site, "coordinator.next_key") == 16);
}

TEST_CASE("daemon: a coordinator that has replaced its key gets no second sum of the same update") {
  Site site;
  site::begin_secure(site);
  site::SecureTurn first(site, 1, 1);
  first.begin();
  REQUIRE(first.masks());
  REQUIRE(first.reveals());
  const SecretKey next = contact_key(50);
  announce(site, next);
  site.going = {kSecond};
  hold(site, next);
  REQUIRE(site.run_until([&] { return site.greeted; }));
  REQUIRE(site.hears<protocol::RunAnswer>(kSecond));
  site::SecureTurn second(site, 1, 1, kSecond);
  second.begin();
  REQUIRE(second.masks());
  CHECK(site.count<protocol::UpdateOffer>(kSecond) == 0);
  CHECK(site::why_not(site).find(
            "an update from the same model and the same run description was already summed in round "
            "1 of run 7") == 0);
}

TEST_CASE("move: the owner names another address or key, and the client keeps its number and its history") {
  Site site;
  connect(site);
  boost::asio::io_context io;
  const protocol::Address elsewhere{"fedge.example.org", 7433};
  MoveOrder order{.state_directory = site.state.path(),
                  .program = "fedge-client",
                  .software = "test",
                  .addresses = {elsewhere},
                  .key = contact_key(50).public_key(),
                  .check = false};
  const auto busy = move(io, order);
  REQUIRE_FALSE(busy);
  CHECK(busy.error().message.find("a client daemon runs in") == 0);
  site.leave();
  for (const auto& key : {contact_key(50).public_key(), contact_key(51).public_key()}) {
    order.key = key;
    REQUIRE(move(io, order));
    CHECK(stored(site).coordinator_key == key);
    CHECK(stored(site).identity() == coordinator_key().public_key());
  }
  CHECK(stored(site).coordinators == std::vector{elsewhere});
  CHECK(stored(site).client == ClientId(0));
}

TEST_CASE("move: the key that the owner names counts, and none that somebody else has announced") {
  Site site;
  connect(site);
  announce(site, contact_key(50));  // a thief's
  site.leave();
  site.listener->set_identity(*protocol::make_tls_identity(contact_key(50)));
  MoveOrder order{.state_directory = site.state.path(),
                  .program = "fedge-client",
                  .software = "test",
                  .addresses = {},
                  .key = coordinator_key().public_key()};
  SUBCASE("checked") {
    std::atomic<bool> done = false;
    Result<Membership> moved = invalid("not done");
    std::thread owner([&] {
      boost::asio::io_context io;
      moved = move(io, order);
      done = true;
    });
    site.run_until([&] { return done.load(); });
    owner.join();
    REQUIRE_FALSE(moved);
    CHECK(moved.error().message.find("the public key of the peer is") != std::string::npos);
    CHECK(stored(site).next_key);  // nothing was changed
  }
  SUBCASE("unchecked") {
    order.check = false;
    REQUIRE(move(site.io, order));
    CHECK_FALSE(stored(site).next_key);
    CHECK(stored(site).coordinator_key == coordinator_key().public_key());
  }
}

TEST_CASE("membership: who joins the same coordinator again knows it as the same, whatever its key is now") {
  Site site;
  Membership membership = stored(site);
  for (const std::uint8_t number : {std::uint8_t{50}, std::uint8_t{51}}) {
    membership.take_key(contact_key(number).public_key());
    REQUIRE(write_membership(site.state.path(), membership));
  }
  std::filesystem::remove(site.state.path() / "membership.json");
  const auto first = first_key_of(site.state.path(), contact_key(51).public_key());
  REQUIRE(first);
  CHECK(*first == coordinator_key().public_key());
  CHECK_FALSE(*first_key_of(site.state.path(), contact_key(52).public_key()));
  REQUIRE(write_file_atomic(site.state.path() / "coordinator-keys.json", "{}{"));
  CHECK(first_key_of(site.state.path(), contact_key(51).public_key()).error().code == ErrorCode::kCorrupt);
}

TEST_CASE("membership: a damaged key of either kind is refused, and not dropped") {
  Site site;
  Membership membership = stored(site);
  membership.next_key = contact_key(50).public_key();
  membership.first_key = contact_key(51).public_key();
  REQUIRE(write_membership(site.state.path(), membership));
  CHECK(stored(site).next_key == membership.next_key);
  CHECK(stored(site).first_key == membership.first_key);
  const auto file = site.state.path() / "membership.json";
  const std::string text = *read_file(file, 1 << 16);
  for (const char* name : {"next_key", "first_key"}) {
    std::string damaged = text;
    damaged.replace(damaged.find(name) + std::string(name).size() + 4, 2, "xx");
    REQUIRE(write_file_atomic(file, damaged));
    CHECK(read_membership(site.state.path()).error().code == ErrorCode::kCorrupt);
  }
}

}  // namespace fedge::client
