// HttpSocket: a connected TCP or Unix socket, with or without TLS. Handlers run on the io_context's thread.
// Private to server/http/: needs Asio and OpenSSL.
#pragma once

#include <openssl/ssl.h>

#include <boost/asio/buffer.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/ssl/context.hpp>
#include <functional>
#include <memory>

#include "server/http/http.h"
#include "server/http/http_identity.h"

namespace fedge::server {

class HttpIdentity {
 public:
  explicit HttpIdentity(std::shared_ptr<boost::asio::ssl::context> context) : context_(std::move(context)) {}
  boost::asio::ssl::context& context() const { return *context_; }

 private:
  std::shared_ptr<boost::asio::ssl::context> context_;
};

class HttpSocket {
 public:
  using Plain = boost::asio::generic::stream_protocol::socket;
  using Done = std::function<void(const boost::system::error_code&, std::size_t)>;

  static std::unique_ptr<HttpSocket> plain(Plain socket);
  static std::unique_ptr<HttpSocket> tls(Plain socket, std::shared_ptr<HttpIdentity> identity);
  virtual ~HttpSocket() = default;

  virtual void handshake(Done done) = 0;
  virtual void read_some(boost::asio::mutable_buffer buffer, Done done) = 0;
  virtual void write(boost::asio::const_buffer buffer, Done done) = 0;
  // Tells the peer that nothing more will be sent.
  virtual void end(Done done) = 0;
  virtual void close() = 0;
  virtual bool is_open() const = 0;
};

HttpPeer peer_of(HttpSocket::Plain& socket);

}  // namespace fedge::server
