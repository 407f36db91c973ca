// HttpServer serves HTTP/1.1 for an HttpService: on a TCP address, with or without TLS 1.3, or on a Unix
// socket. Everything runs on the io_context's thread; the service may answer from any thread. A connection
// holds at most one request and one answer. Heads, bodies, answers and pauses have time limits. Above
// max_connections, a connection without a request in progress is closed: strangers first, and of them the one
// silent for longest.
#pragma once

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>
#include <variant>

#include "core/result.h"
#include "protocol/session/endpoint.h"
#include "server/http/http.h"
#include "server/http/http_identity.h"

namespace boost::asio {
class io_context;
}

namespace fedge::server {

struct HttpOptions {
  // A TCP address, or the path of a Unix socket, which is created with mode 0600. A file at that path is
  // replaced, so no other process may be using it.
  std::variant<protocol::Address, std::filesystem::path> listen;
  std::shared_ptr<HttpIdentity> identity = {};  // null: without TLS
  std::string what = "the admin endpoint";      // for error messages
  // Longest time for the TLS handshake, to receive a request's head, to receive or send 256 KiB of a body, or
  // to wait between two requests.
  std::chrono::milliseconds timeout{10'000};
  std::chrono::milliseconds heartbeat{15'000};  // longest silence of a stream of events
  std::size_t max_connections = 64;
  std::size_t max_behind = 1 << 20;  // bytes of events that wait for a slow receiver
};

class HttpServer {
 public:
  // kUnavailable if it cannot listen.
  static Result<std::unique_ptr<HttpServer>> listen(boost::asio::io_context& io, const HttpOptions& options,
                                                    std::shared_ptr<HttpService> service);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  protocol::Address address() const;  // listening TCP address, with the actual port
  std::size_t connections() const;    // open connections
  // Closes the listener and all connections, so that the io_context can run out of work.
  void stop();

 private:
  class Impl;
  explicit HttpServer(std::shared_ptr<Impl> impl);
  std::shared_ptr<Impl> impl_;
};

}  // namespace fedge::server
