// AdminServer: a small HTTP server for the operator's pages, on a separate address. It has no users and no
// TLS, so the address must be reachable only from this machine or the operators' network. Everything runs
// on the io_context's thread, so an answer also proves that the thread is alive. A connection holds at most
// one request head and one answer. Above max_connections, the connection silent for longest is closed.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>

#include "core/result.h"
#include "protocol/session/endpoint.h"
#include "server/admin/http.h"

namespace boost::asio {
class io_context;
}

namespace fedge::server {

struct AdminOptions {
  protocol::Address listen;
  // Longest time to receive a request's head, to send an answer, or to wait between two requests.
  std::chrono::milliseconds timeout{10'000};
  std::size_t max_connections = 64;
};

class AdminServer {
 public:
  // kUnavailable if it cannot listen on the address.
  static Result<std::unique_ptr<AdminServer>> listen(boost::asio::io_context& io, const AdminOptions& options,
                                                     HttpPages pages);
  ~AdminServer();
  AdminServer(const AdminServer&) = delete;
  AdminServer& operator=(const AdminServer&) = delete;

  protocol::Address address() const;  // listening address, with the actual port
  std::size_t connections() const;    // open connections
  // Closes the listener and all connections, so that the io_context can run out of work.
  void stop();

 private:
  class Impl;
  explicit AdminServer(std::shared_ptr<Impl> impl);
  std::shared_ptr<Impl> impl_;
};

}  // namespace fedge::server
