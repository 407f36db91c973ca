// Bits that change on the way.
#include <doctest/doctest.h>

#include <array>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/write.hpp>

#include "tests/unit/protocol/link_fixture.h"

using namespace fedge;
using namespace fedge::protocol;
using boost::asio::ip::tcp;
using std::chrono::milliseconds;

namespace {

// Hands on everything both ways, but for one bit.
class FlippingProxy : public std::enable_shared_from_this<FlippingProxy> {
 public:
  enum Way : std::size_t { kToServer = 0, kToClient = 1 };

  explicit FlippingProxy(Loopback& net)
      : net_(net),
        acceptor_(net.io, {boost::asio::ip::address_v4::loopback(), 0}),
        sides_{tcp::socket(net.io), tcp::socket(net.io)} {}
  void start() {
    acceptor_.async_accept(sides_[0], [self = shared_from_this()](const boost::system::error_code& error) {
      if (error) return;
      self->sides_[1].connect(
          {boost::asio::ip::address_v4::loopback(), self->net_.listener->local_address().port});
      self->pump(kToServer);
      self->pump(kToClient);
    });
  }
  Address address() const { return {"127.0.0.1", acceptor_.local_endpoint().port()}; }
  // Of the bytes that go this way, counted from now on: one that is this many bits on.
  void flip(Way way, std::uint64_t bit) { flips_[way] = bit; }
  bool flipped(Way way) const { return done_[way]; }
  void close() {
    boost::system::error_code ignored;
    acceptor_.close(ignored);
    for (tcp::socket& side : sides_) side.close(ignored);
  }

 private:
  void pump(Way way) {
    sides_[way].async_read_some(
        boost::asio::buffer(buffers_[way]),
        [self = shared_from_this(), way](const boost::system::error_code& error, std::size_t size) {
          boost::system::error_code broken = error;
          self->change(way, size);
          if (!broken)
            boost::asio::write(self->sides_[1 - way], boost::asio::buffer(self->buffers_[way], size), broken);
          if (broken) return self->close();
          self->pump(way);
        });
  }
  void change(Way way, std::size_t size) {
    if (!flips_[way]) return;
    if (*flips_[way] >= size * 8) {
      *flips_[way] -= size * 8;
      return;
    }
    buffers_[way][*flips_[way] / 8] ^= static_cast<char>(1 << (*flips_[way] % 8));
    flips_[way].reset();
    done_[way] = true;
  }

  Loopback& net_;
  tcp::acceptor acceptor_;
  std::array<tcp::socket, 2> sides_;
  std::array<std::array<char, 4096>, 2> buffers_{};
  std::array<std::optional<std::uint64_t>, 2> flips_;
  std::array<bool, 2> done_{};
};

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
      const auto proxy = std::make_shared<FlippingProxy>(net);
      proxy->start();
      connect_through(net, *proxy);
      REQUIRE(net.run_until([&] { return net.server.link && net.client.link; }));
      End& from = way == FlippingProxy::kToServer ? net.client : net.server;
      End& to = way == FlippingProxy::kToServer ? net.server : net.client;
      // The record's length, its content and its tag are within the first hundred bytes.
      const std::uint64_t bit = i < 8 ? static_cast<std::uint64_t>(24 + 2 * i) : rng.below(800);
      CAPTURE(bit);
      proxy->flip(way, bit);
      from.link->send(kMessage);
      CHECK(net.run_until([&] { return to.closed.has_value(); }));
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
      const auto proxy = std::make_shared<FlippingProxy>(net);
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
  // Versions in the heads of records before there is a key mean nothing (RFC 8446, section 5.1).
  CHECK(ended >= flipped * 9 / 10);
}
