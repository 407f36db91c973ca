// Bounds the connections that a coordinator that lies about other clients can make this client open.
#include <doctest/doctest.h>

#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "client/swarm/dial_limits.h"
#include "client/swarm/swarm.h"
#include "protocol/chunks/manifest.h"
#include "swarm/chunk_set.h"

namespace fedge::client {
namespace {

using boost::asio::ip::tcp;

SecretKey dialling_key(std::uint8_t number) {
  std::array<std::uint8_t, 32> seed{};
  seed[0] = number;
  return SecretKey::from_seed(seed);
}

// A host that accepts every connection, sends nothing, and counts them.
class CountingHost {
 public:
  CountingHost(boost::asio::io_context& io, const char* host)
      : acceptor_(io, {boost::asio::ip::make_address(host), 0}) {
    accept();
  }
  std::string address() const {
    return acceptor_.local_endpoint().address().to_string() + ":" +
           std::to_string(acceptor_.local_endpoint().port());
  }
  std::size_t count = 0;
  std::function<void()> on_connection = [] {};

 private:
  void accept() {
    acceptor_.async_accept([this](const boost::system::error_code& error, tcp::socket socket) {
      if (error) return;
      ++count;
      socket.close();
      on_connection();
      accept();
    });
  }
  tcp::acceptor acceptor_;
};

class NothingThere final : public protocol::ChunkSource, public protocol::ChunkSink {
 public:
  Result<void> read_part(std::size_t, std::size_t, std::span<std::byte>) override { return nothing(); }
  bool has(std::size_t) const override { return false; }
  Result<void> write(std::size_t, std::span<const std::byte>) override { return nothing(); }

 private:
  static Result<void> nothing() { return Error{ErrorCode::kNotFound, "nothing is there"}; }
};

// A client whose coordinator is on its own host: only then may the client connect to loopback addresses.
struct DialScene {
  DialScene() {
    const auto coordinator = *protocol::make_tls_identity(dialling_key(1));
    const auto mine = *protocol::make_tls_identity(dialling_key(2));
    auto listening =
        protocol::listen(io, coordinator, {.address = {"127.0.0.1", 0}, .timeouts = {}, .on_refused = {}},
                         [this](std::shared_ptr<protocol::Link> made) {
                           there = std::move(made);
                           there->authorise();
                         });
    REQUIRE(listening);
    listener = std::move(*listening);
    protocol::connect(io, mine, listener->local_address(), dialling_key(1).public_key(),
                      [this](Result<std::shared_ptr<protocol::Link>> made) {
                        REQUIRE(made);
                        here = *made;
                        here->authorise();
                      });
    REQUIRE(run_until([&] { return here && there; }));
    auto created = Swarm::create(
        io, {.client = ClientId(0), .identity = mine, .software = "test", .on_event = {}, .unseal = {}}, {});
    REQUIRE(created);
    swarm = *created;
    swarm->use(here);
  }
  ~DialScene() {
    swarm->shut_down();
    here->close("the test is over");
    run_until([&] { return true; });
  }
  bool run_until(const std::function<bool()>& condition) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    io.restart();
    while (!condition() && std::chrono::steady_clock::now() < deadline)
      io.run_one_for(std::chrono::milliseconds(5));
    return condition();
  }
  protocol::Manifest object(std::uint8_t number) const {
    const std::vector<std::byte> bytes(64, std::byte{number});
    return protocol::make_manifest(Digest{}, Coverage::all(16), bytes, protocol::kDefaultChunkSize);
  }
  void name(const protocol::Manifest& of, std::uint32_t first, std::uint32_t count, const std::string& at) {
    protocol::SwarmMembers members{of.id(), {}, {}};
    for (std::uint32_t i = first; i < first + count; ++i)
      members.join.push_back({ClientId(i), dialling_key(static_cast<std::uint8_t>(i)).public_key(), at});
    swarm->received(members);
  }
  void take_in_hand(const protocol::Manifest& manifest) {
    const auto nothing = std::make_shared<NothingThere>();
    swarm->open({.manifest = manifest,
                 .source = nothing,
                 .sink = nothing,
                 .wanted = swarm::ChunkSet::full(manifest.chunk_count()),
                 .seeding = {}},
                [](const Result<void>&) {});
  }

  boost::asio::io_context io;
  std::unique_ptr<protocol::Listener> listener;
  std::shared_ptr<protocol::Link> there, here;
  std::shared_ptr<Swarm> swarm;
};

}  // namespace

TEST_CASE("swarm dials: for an object that is not in hand nobody is connected to") {
  DialScene scene;
  CountingHost victim(scene.io, "127.0.0.2");
  CountingHost member(scene.io, "127.0.0.3");
  scene.name(scene.object(1), 10, 40, victim.address());
  scene.name(scene.object(2), 100, 1, member.address());
  scene.take_in_hand(scene.object(2));
  // All dials that started before this one have arrived before it.
  CHECK(scene.run_until([&] { return member.count > 0; }));
  CHECK(victim.count == 0);
}

TEST_CASE("swarm dials: however often a coordinator names one host, few connections go there") {
  DialScene scene;
  CountingHost victim(scene.io, "127.0.0.2");
  CountingHost member(scene.io, "127.0.0.3");
  const protocol::Manifest object = scene.object(1);
  scene.take_in_hand(object);
  // The coordinator names the host again at each connection, by new numbers and new spellings.
  std::uint32_t named = 10;
  victim.on_connection = [&] { scene.name(object, named += 20, 20, victim.address()); };
  scene.name(object, named, 20, victim.address());
  REQUIRE(scene.run_until([&] { return victim.count >= DialLimits::kFreeFailures; }));
  scene.name(object, 5, 1, member.address());
  CHECK(scene.run_until([&] { return member.count > 0; }));
  CHECK(victim.count <= DialLimits::kFreeFailures + DialLimits::kAtOnceToHost);
}

TEST_CASE("swarm dials: a client is not sent to addresses nearer to it than its coordinator, nor to names") {
  struct Case {
    const char* coordinator;
    std::vector<const char*> allowed;
    std::vector<const char*> refused;
  };
  const std::vector<const char*> nowhere = {
      "example.org",        "0.0.0.0", "::", "224.0.0.1", "ff02::1", "localhost", "::1%1", "255.255.255.255",
      "2001:0:cb00:7101::1"};
  for (const Case& c : {
           Case{"198.51.100.7",
                {"203.0.113.9", "2001:db8::1", "::ffff:203.0.113.9", "2002:cb00:7109::1",
                 "64:ff9b::203.0.113.9", "::203.0.113.9"},
                {"127.0.0.1",       "127.9.9.9",         "::1",
                 "10.1.2.3",        "172.16.0.1",        "172.31.255.255",
                 "192.168.1.1",     "100.64.0.1",        "169.254.169.254",
                 "fe80::1",         "fd00::1",           "::ffff:127.0.0.1",
                 "::ffff:10.0.0.1", "fec0::1",           "2002:a00:1::1",
                 "2002:7f00:1::1",  "64:ff9b::10.0.0.1", "64:ff9b::127.0.0.1",
                 "64:ff9b:1::1",    "::10.0.0.1",        "::127.0.0.1"}},
           // The network of a scoped global address is unknown.
           Case{"2001:db8::1%1", {"203.0.113.9"}, {"127.0.0.1", "::1", "10.1.2.3"}},
           Case{"192.168.1.10",
                {"192.168.1.11", "10.0.0.1", "203.0.113.9", "172.32.0.1"},
                {"127.0.0.1", "169.254.169.254"}},
           Case{"127.0.0.1", {"127.0.0.1", "192.168.1.1", "203.0.113.9", "::1"}, {}},
       }) {
    CAPTURE(c.coordinator);
    DialLimits limits;
    limits.coordinator_at(c.coordinator);
    for (const char* host : c.allowed) CHECK_MESSAGE(limits.may_dial(host, Time{}), host);
    for (const char* host : c.refused) CHECK_MESSAGE(!limits.may_dial(host, Time{}), host);
    for (const char* host : nowhere) CHECK_MESSAGE(!limits.may_dial(host, Time{}), host);
  }
}

TEST_CASE("dial limits: eight at once, four of them to one host, and any number that are reached") {
  DialLimits limits;
  for (int i = 0; i < 4; ++i) {
    REQUIRE(limits.may_dial("203.0.113.1", Time{}));
    limits.began("203.0.113.1", Time{});
  }
  CHECK_FALSE(limits.may_dial("203.0.113.1", Time{}));
  for (int i = 0; i < 4; ++i) {
    const std::string host = "203.0.113." + std::to_string(2 + i);
    REQUIRE(limits.may_dial(host, Time{}));
    limits.began(host, Time{});
  }
  CHECK_FALSE(limits.may_dial("203.0.113.9", Time{}));
  for (int i = 0; i < 4; ++i) limits.ended("203.0.113.1", Time{}, true);
  for (int i = 0; i < 1000; ++i) {
    REQUIRE(limits.may_dial("203.0.113.1", Time{}));
    limits.began("203.0.113.1", Time{});
    limits.ended("203.0.113.1", Time{}, true);
  }
}

TEST_CASE("dial limits: a host whose number is written otherwise is the same host") {
  DialLimits limits;
  for (const char* host : {"203.0.113.1", "::ffff:203.0.113.1", "::ffff:cb00:7101", "203.0.113.1"}) {
    REQUIRE(limits.may_dial(host, Time{}));
    limits.began(host, Time{});
  }
  CHECK_FALSE(limits.may_dial("0:0:0:0:0:ffff:203.0.113.1", Time{}));
  for (const char* host : {"2001:db8::1", "2001:0db8:0::0001", "2001:DB8:0:0::1", "2001:db8::1"}) {
    REQUIRE(limits.may_dial(host, Time{}));
    limits.began(host, Time{});
  }
  limits.ended("203.0.113.1", Time{}, true);
  CHECK_FALSE(limits.may_dial("2001:db8::0:1", Time{}));
  CHECK(limits.may_dial("::ffff:203.0.113.1", Time{}));
}

TEST_CASE("dial limits: a host has no other names through IPv6 scopes, nor through networks of IPv4") {
  DialLimits limits;
  for (const char* host : {"2001:db8::1%1", "2001:db8::1%2", "fd00::1%1", "::ffff:203.0.113.1%1"})
    CHECK_MESSAGE(!limits.may_dial(host, Time{}), host);
  for (const char* host :
       {"203.0.113.1", "2002:cb00:7101::1", "2002:cb00:7101:7::9", "64:ff9b::203.0.113.1"}) {
    REQUIRE_MESSAGE(limits.may_dial(host, Time{}), host);
    limits.began(host, Time{});
  }
  for (const char* host : {"203.0.113.1", "2002:cb00:7101::2", "64:ff9b::cb00:7101", "::203.0.113.1"})
    CHECK_MESSAGE(!limits.may_dial(host, Time{}), host);
  CHECK(limits.may_dial("64:ff9b::203.0.113.2", Time{}));
  // Link-local addresses need a zone: a host may have several links.
  limits.coordinator_at("fe80::1%1");
  CHECK(limits.may_dial("fe80::2%1", Time{}));
}

TEST_CASE(
    "dial limits: a host that is not reached is left alone for longer and longer, a reached one is not") {
  DialLimits limits;
  Time now{};
  std::vector<double> pauses;
  const auto fail = [&] {
    while (!limits.may_dial("203.0.113.1", now)) now += std::chrono::milliseconds(100);
    limits.began("203.0.113.1", now);
    limits.ended("203.0.113.1", now, false);
  };
  for (int i = 0; i < 20; ++i) {
    const Time before = now;
    fail();
    pauses.push_back(to_seconds(now - before));
  }
  for (std::size_t i = 0; i < 8; ++i) CHECK(pauses[i] == 0);
  CHECK(pauses[8] == doctest::Approx(1));
  CHECK(pauses[9] == doctest::Approx(2));
  CHECK(pauses[12] == doctest::Approx(16));
  CHECK(pauses[19] == doctest::Approx(300));
  while (!limits.may_dial("203.0.113.1", now)) now += std::chrono::milliseconds(100);
  limits.began("203.0.113.1", now);
  limits.ended("203.0.113.1", now, true);
  CHECK(limits.may_dial("203.0.113.1", now));
}

TEST_CASE("dial limits: thirty-two connections to any hosts may fail, then one a second, over an hour too") {
  DialLimits limits;
  std::size_t failed = 0;
  std::uint32_t host = 0;
  for (Time now{}; now < Time(seconds(3600)); now += std::chrono::milliseconds(100))
    for (int i = 0; i < 4; ++i) {
      ++host;
      const std::string other = "203." + std::to_string(host >> 16) + "." + std::to_string(host >> 8 & 255) +
                                "." + std::to_string(host & 255);
      if (!limits.may_dial(other, now)) continue;
      limits.began(other, now);
      limits.ended(other, now, false);
      ++failed;
    }
  CHECK(failed >= 3600);
  CHECK(failed <= 3600 + 32);
}

}  // namespace fedge::client
