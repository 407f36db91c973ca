// Bits that flip in transit.
#include <doctest/doctest.h>

#include "tests/support/flipping_proxy.h"
#include "tests/unit/protocol/link_fixture.h"

using namespace fedge;
using namespace fedge::protocol;
using std::chrono::milliseconds;
using test::FlippingProxy;

namespace {

const Timeouts kQuick{.handshake = milliseconds(1000), .ping = milliseconds(40), .idle = milliseconds(400)};

void connect_through(Loopback& net, FlippingProxy& proxy) {
  connect(
      net.io, net.client_identity, proxy.address(), net.server_key.public_key(),
      [&](Result<std::shared_ptr<Link>> link) {
        if (!link) {
          net.refused = link.error();
          return;
        }
        net.client.use(*link);
        net.client.link->authorise();
      },
      kQuick);
}

const RunDescription kMessage{RunId(1), "run", 1, std::string(64, 'x'), {}};

}  // namespace

TEST_CASE("A1 row 33: one bit changed in what two links send each other ends the connection, either way") {
  Rng rng(33);
  for (const auto way : {FlippingProxy::kToServer, FlippingProxy::kToClient})
    for (int i = 0; i < 24; ++i) {
      Loopback net;
      net.listen({.timeouts = kQuick});
      const auto proxy = std::make_shared<FlippingProxy>(net.io, net.listener->local_address());
      proxy->start();
      connect_through(net, *proxy);
      REQUIRE(net.run_until([&] { return net.server.link && net.client.link; }));
      End& from = way == FlippingProxy::kToServer ? net.client : net.server;
      End& to = way == FlippingProxy::kToServer ? net.server : net.client;
      // The record's length, content and tag lie within the first hundred bytes.
      const std::uint64_t bit = i < 8 ? static_cast<std::uint64_t>(24 + 2 * i) : rng.below(800);
      CAPTURE(bit);
      proxy->flip(way, bit);
      from.link->send(kMessage);
      CHECK(net.run_until([&] { return to.closed && from.closed; }));
      // The alert that comes back has the same error code.
      if (from.closed) CHECK(from.closed->code == ErrorCode::kUnavailable);
      CHECK(proxy->flipped(way));
      CHECK(to.messages.empty());
      proxy->close();
    }
}

TEST_CASE("A1 row 33: one bit changed in the handshake ends it, or has changed nothing that counts") {
  Rng rng(34);
  int flipped = 0;
  int ended = 0;
  for (const auto way : {FlippingProxy::kToServer, FlippingProxy::kToClient})
    for (int i = 0; i < 40; ++i) {
      Loopback net;
      net.listen({.timeouts = kQuick});
      const auto proxy = std::make_shared<FlippingProxy>(net.io, net.listener->local_address());
      proxy->start();
      const std::uint64_t bit = rng.below(8 * 600);
      CAPTURE(bit);
      proxy->flip(way, bit);
      connect_through(net, *proxy);
      net.run_until([&] {
        return net.refused || net.client.closed || net.server.closed || (net.client.link && net.server.link);
      });
      if (net.server.link) CHECK(net.server.link->peer() == net.client_key.public_key());
      if (net.client.link) CHECK(net.client.link->peer() == net.server_key.public_key());
      if (proxy->flipped(way)) {
        ++flipped;
        if (net.refused || net.client.closed || net.server.closed) ++ended;
      }
      proxy->close();
    }
  CHECK(flipped >= 40);
  // Before the keys are established, the version in a record's header is ignored (RFC 8446, section 5.1).
  CHECK(ended >= flipped * 9 / 10);
}
