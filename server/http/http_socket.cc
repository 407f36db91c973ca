#include <sys/socket.h>

#include <algorithm>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/write.hpp>
#include <cstring>
#include <utility>

#include "server/http/detail/http_socket.h"

namespace fedge::server {
namespace {

namespace asio = boost::asio;
using ErrorValue = boost::system::error_code;

class PlainSocket final : public HttpSocket {
 public:
  explicit PlainSocket(Plain socket) : socket_(std::move(socket)) {}
  void handshake(Done done) override { done({}, 0); }
  void read_some(asio::mutable_buffer buffer, Done done) override {
    socket_.async_read_some(buffer, std::move(done));
  }
  void write(asio::const_buffer buffer, Done done) override {
    asio::async_write(socket_, buffer, std::move(done));
  }
  void end(Done done) override {
    ErrorValue ignored;
    socket_.shutdown(Plain::shutdown_send, ignored);
    done({}, 0);
  }
  void close() override {
    ErrorValue ignored;
    socket_.close(ignored);
  }
  bool is_open() const override { return socket_.is_open(); }

 private:
  Plain socket_;
};

class TlsSocket final : public HttpSocket {
 public:
  TlsSocket(Plain socket, std::shared_ptr<HttpIdentity> identity)
      : identity_(std::move(identity)), stream_(std::move(socket), identity_->context()) {}
  void handshake(Done done) override {
    stream_.async_handshake(asio::ssl::stream_base::server,
                            [done = std::move(done)](const ErrorValue& error) { done(error, 0); });
  }
  void read_some(asio::mutable_buffer buffer, Done done) override {
    stream_.async_read_some(buffer, std::move(done));
  }
  void write(asio::const_buffer buffer, Done done) override {
    asio::async_write(stream_, buffer, std::move(done));
  }
  void end(Done done) override {
    stream_.async_shutdown([this, done = std::move(done)](const ErrorValue&) {
      ErrorValue ignored;
      stream_.next_layer().shutdown(Plain::shutdown_send, ignored);
      done(ignored, 0);
    });
  }
  void close() override {
    ErrorValue ignored;
    stream_.next_layer().close(ignored);
  }
  bool is_open() const override { return stream_.next_layer().is_open(); }

 private:
  std::shared_ptr<HttpIdentity> identity_;
  asio::ssl::stream<Plain> stream_;
};

}  // namespace

std::unique_ptr<HttpSocket> HttpSocket::plain(Plain socket) {
  return std::make_unique<PlainSocket>(std::move(socket));
}

std::unique_ptr<HttpSocket> HttpSocket::tls(Plain socket, std::shared_ptr<HttpIdentity> identity) {
  return std::make_unique<TlsSocket>(std::move(socket), std::move(identity));
}

HttpPeer peer_of(HttpSocket::Plain& socket) {
  HttpPeer peer;
  ErrorValue error;
  const auto remote = socket.remote_endpoint(error);
  if (!error && (remote.protocol().family() == AF_INET || remote.protocol().family() == AF_INET6)) {
    asio::ip::tcp::endpoint endpoint;
    std::memcpy(endpoint.data(), remote.data(), std::min(remote.size(), endpoint.capacity()));
    peer.address = endpoint.address().to_string();
    return peer;
  }
  ucred other{};
  socklen_t size = sizeof other;
  if (::getsockopt(socket.native_handle(), SOL_SOCKET, SO_PEERCRED, &other, &size) == 0)
    peer.user = other.uid;
  return peer;
}

}  // namespace fedge::server
