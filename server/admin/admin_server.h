// AdminServer: a small HTTP server for an operator's pages, on an address of its own. It knows no users and
// speaks no TLS: the address is for the machine itself or a network of its operators. Everything happens on
// the io_context's thread, so a page is also the word that the thread is alive. A connection holds at most
// one request's head and one answer; above the limit whoever has been silent longest gives way.
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
  // For a request's head to come, for an answer to be taken, and between two requests.
  std::chrono::milliseconds timeout{10'000};
  std::size_t max_connections = 64;
};

class AdminServer {
 public:
  // kUnavailable if the address cannot be listened on.
  static Result<std::unique_ptr<AdminServer>> listen(boost::asio::io_context& io, const AdminOptions& options,
                                                     HttpPages pages);
  ~AdminServer();
  AdminServer(const AdminServer&) = delete;
  AdminServer& operator=(const AdminServer&) = delete;

  protocol::Address address() const;  // where it listens, with the real port
  std::size_t connections() const;    // that are open
  // Closes everything, so that the io_context can run out of work.
  void stop();

 private:
  class Impl;
  explicit AdminServer(std::shared_ptr<Impl> impl);
  std::shared_ptr<Impl> impl_;
};

}  // namespace fedge::server
