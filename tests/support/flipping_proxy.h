// A proxy that flips one bit of a connection.
#pragma once

#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/write.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "protocol/session/endpoint.h"

namespace fedge::test {

// Forwards one connection to a server on loopback in both directions, and flips the requested bits.
class FlippingProxy : public std::enable_shared_from_this<FlippingProxy> {
 public:
  enum Way : std::size_t { kToServer = 0, kToClient = 1 };

  FlippingProxy(boost::asio::io_context& io, const protocol::Address& server)
      : server_(server),
        acceptor_(io, {boost::asio::ip::address_v4::loopback(), 0}),
        sides_{boost::asio::ip::tcp::socket(io), boost::asio::ip::tcp::socket(io)} {}
  void start() {
    acceptor_.async_accept(sides_[0], [self = shared_from_this()](const boost::system::error_code& error) {
      if (error) return;
      self->sides_[1].connect({boost::asio::ip::address_v4::loopback(), self->server_.port});
      self->pump(kToServer);
      self->pump(kToClient);
    });
  }
  protocol::Address address() const { return {"127.0.0.1", acceptor_.local_endpoint().port()}; }
  // Flips one bit in this direction: the one that follows after `bit` more bits from now on.
  void flip(Way way, std::uint64_t bit) { flips_[way] = bit; }
  bool flipped(Way way) const { return done_[way]; }
  void close() {
    boost::system::error_code ignored;
    acceptor_.close(ignored);
    for (boost::asio::ip::tcp::socket& side : sides_) side.close(ignored);
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

  protocol::Address server_;
  boost::asio::ip::tcp::acceptor acceptor_;
  std::array<boost::asio::ip::tcp::socket, 2> sides_;
  std::array<std::array<char, 4096>, 2> buffers_{};
  std::array<std::optional<std::uint64_t>, 2> flips_;
  std::array<bool, 2> done_{};
};

}  // namespace fedge::test
