#include <netinet/tcp.h>
#include <sys/socket.h>

#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <utility>

#include "protocol/session/detail/handshake.h"
#include "protocol/session/detail/link_impl.h"
#include "protocol/session/detail/socket_options.h"
#include "protocol/session/endpoint.h"
#include "protocol/session/loop.h"

namespace fedge::protocol {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using Done = std::function<void(Result<std::shared_ptr<Link>>)>;

// Limit of unsent bytes in the kernel: with more, chunks would queue in front of control messages.
constexpr int kUnsentInKernel = 512 << 10;

class Connector : public std::enable_shared_from_this<Connector> {
 public:
  Connector(asio::io_context& io, std::shared_ptr<TlsIdentity> identity, const Address& address,
            const PinnedKey& expected)
      : identity_(std::move(identity)),
        address_(address),
        expected_(expected),
        resolver_(io),
        socket_(io),
        timer_(io) {}

  void start(const Timeouts& timeouts, Done done) {
    timeouts_ = timeouts;
    done_ = std::move(done);
    timer_.after(timeouts.handshake, [self = shared_from_this()] {
      self->fail({ErrorCode::kUnavailable, "the peer did not answer in time"});
    });
    resolver_.async_resolve(address_.host, std::to_string(address_.port), tcp::resolver::numeric_service,
                            [self = shared_from_this()](const boost::system::error_code& error,
                                                        const tcp::resolver::results_type& found) {
                              if (!self->done_) return;
                              if (error) return self->fail({ErrorCode::kUnavailable, error.message()});
                              self->connect(found);
                            });
  }

 private:
  void connect(const tcp::resolver::results_type& found) {
    asio::async_connect(
        socket_, found,
        [self = shared_from_this()](const boost::system::error_code& error, const tcp::endpoint&) {
          if (!self->done_) return;
          if (error) return self->fail({ErrorCode::kUnavailable, error.message()});
          self->greet();
        });
  }

  void greet() {
    set_socket_options(socket_);
    const auto handshake =
        std::make_shared<Handshake>(TlsStream::connecting(std::move(socket_), identity_, expected_));
    handshake->start(timeouts_.handshake, [self = shared_from_this()](Result<TlsStream> stream) {
      if (!self->done_) return;
      if (!stream) return self->fail(stream.error());
      self->timer_.cancel();
      boost::system::error_code gone;
      const tcp::endpoint there = stream->socket().remote_endpoint(gone);
      const Address address = gone ? self->address_ : address_of(there);
      const auto link =
          std::make_shared<LinkImpl>(std::move(*stream), to_string(address), self->timeouts_, nullptr);
      const Done done = std::exchange(self->done_, nullptr);
      done(std::shared_ptr<Link>(link));
      link->start();
    });
  }

  void fail(const Error& error) {
    if (!done_) return;
    timer_.cancel();
    resolver_.cancel();
    boost::system::error_code ignored;
    socket_.close(ignored);
    const Done done = std::exchange(done_, nullptr);
    done(error.with_prefix("cannot connect to " + to_string(address_) + ": "));
  }

  std::shared_ptr<TlsIdentity> identity_;
  Address address_;
  PinnedKey expected_;
  Timeouts timeouts_;
  Done done_;
  tcp::resolver resolver_;
  tcp::socket socket_;
  Timer timer_;
};

}  // namespace

void set_socket_options(tcp::socket& socket) {
  boost::system::error_code ignored;
  socket.set_option(tcp::no_delay(true), ignored);
  // Leave buffer sizes to the kernel, which adapts them to the path.
  const int unsent = kUnsentInKernel;
  ::setsockopt(socket.native_handle(), IPPROTO_TCP, TCP_NOTSENT_LOWAT, &unsent, sizeof unsent);
}

void connect(asio::io_context& io, std::shared_ptr<TlsIdentity> identity, const Address& address,
             const PinnedKey& expected, std::function<void(Result<std::shared_ptr<Link>>)> done,
             const Timeouts& timeouts) {
  std::make_shared<Connector>(io, std::move(identity), address, expected)->start(timeouts, std::move(done));
}

}  // namespace fedge::protocol
