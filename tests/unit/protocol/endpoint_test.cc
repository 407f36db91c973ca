#include "protocol/session/endpoint.h"

#include <doctest/doctest.h>

#include <boost/asio/ip/tcp.hpp>

#include "tests/unit/protocol/link_fixture.h"

using namespace fedge;
using namespace fedge::protocol;

TEST_CASE("address: host and port come apart and together again") {
  for (const char* text : {"192.0.2.7:7000", "coordinator.example:1", "[2001:db8::7]:65535", "localhost:0"}) {
    const auto address = parse_address(text);
    REQUIRE(address);
    CHECK(to_string(*address) == text);
  }
  CHECK(parse_address("[::1]:7000")->host == "::1");
}

TEST_CASE("address: what is none is refused with an example") {
  for (const char* text :
       {"", ":", "host", "host:", ":7000", "host:65536", "host:-1", "host:7000x", "host: 7000", "::1:7000",
        "[]:7000", "[::1]", "ho st:1", "host/path:1", "user@host:1", "h\n:1", "[si%z17]:70", "[host]:1"}) {
    const auto address = parse_address(text);
    CHECK_FALSE(address);
    CHECK(address.error().message.find("192.0.2.7:7000") != std::string::npos);
  }
}

TEST_CASE("address: the same host is told by its number, however it is written, and never by a name") {
  CHECK(same_host("192.0.2.7", "192.0.2.7"));
  CHECK(same_host("::ffff:192.0.2.7", "192.0.2.7"));
  CHECK(same_host("2001:db8:0:0::7", "2001:db8::7"));
  CHECK_FALSE(same_host("192.0.2.7", "192.0.2.8"));
  CHECK_FALSE(same_host("2001:db8::7", "2001:db8::8"));
  CHECK_FALSE(same_host("example.org", "example.org"));
  CHECK_FALSE(same_host("0.0.0.0", "example.org"));
}

TEST_CASE("endpoint: a port in use and an address that is not here are errors that name it") {
  Loopback net;
  net.listen();
  const auto again = listen(net.io, net.server_identity, {.address = net.listener->local_address()},
                            [](std::shared_ptr<Link>) {});
  REQUIRE_FALSE(again);
  CHECK(again.error().message.find(to_string(net.listener->local_address())) != std::string::npos);
  CHECK_FALSE(
      listen(net.io, net.server_identity, {.address = {"192.0.2.1", 0}}, [](std::shared_ptr<Link>) {}));
}

TEST_CASE("endpoint: nobody listening is unavailable, and the error names the address") {
  Loopback net;
  net.listen();
  const Address address = net.listener->local_address();
  net.listener->stop();
  std::optional<Error> error;
  connect(net.io, net.client_identity, address, net.server_key.public_key(),
          [&](Result<std::shared_ptr<Link>> link) { error = link.error(); });
  REQUIRE(net.run_until([&] { return error.has_value(); }));
  CHECK(error->code == ErrorCode::kUnavailable);
  CHECK(error->message.starts_with("cannot connect to " + to_string(address)));
}

TEST_CASE("endpoint: a server that accepts and says nothing is given up in time") {
  Loopback net;
  boost::asio::ip::tcp::acceptor mute(net.io, {boost::asio::ip::address_v4::loopback(), 0});
  std::optional<Error> error;
  connect(net.io, net.client_identity, {"127.0.0.1", mute.local_endpoint().port()},
          net.server_key.public_key(), [&](Result<std::shared_ptr<Link>> link) { error = link.error(); },
          {.handshake = std::chrono::milliseconds(60)});
  REQUIRE(net.run_until([&] { return error.has_value(); }));
  CHECK(error->code == ErrorCode::kUnavailable);
}

TEST_CASE("endpoint: a listener stopped, or gone, within its own callback accepts nobody any more") {
  Loopback net;
  net.authorise_at_once = true;
  auto made =
      listen(net.io, net.server_identity, {.address = {"127.0.0.1", 0}}, [&](std::shared_ptr<Link> link) {
        ++net.links;
        net.server.use(std::move(link));
        net.listener.reset();
      });
  REQUIRE(made);
  const Address address = (*made)->local_address();
  net.listener = std::move(*made);
  for (int i = 0; i < 2; ++i)
    connect(net.io, net.client_identity, address, net.server_key.public_key(),
            [&](Result<std::shared_ptr<Link>> link) {
              if (link) net.client.use(*link);
              if (!link) net.refused = link.error();
            });
  REQUIRE(net.run_until([&] { return net.client.closed || net.refused; }));
  CHECK(net.links == 1);
}
