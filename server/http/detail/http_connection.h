// HttpConnection: one connection of an HttpServer. It receives a request, passes it to the service, sends the
// answer, and begins again. It owns itself by its pending handlers. Private to server/http/.
#pragma once

#include <array>
#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "core/platform/files.h"
#include "protocol/session/loop.h"
#include "server/http/detail/http_socket.h"
#include "server/http/http_server.h"
#include "server/http/request_reader.h"

namespace fedge::server {

class HttpEventStream;

class HttpConnection : public std::enable_shared_from_this<HttpConnection> {
 public:
  struct House {
    boost::asio::io_context& io;
    const HttpOptions& options;
    std::shared_ptr<HttpService> service;
  };
  HttpConnection(House house, std::unique_ptr<HttpSocket> socket, HttpPeer peer);

  void start();
  void close();
  bool is_open() const { return socket_->is_open(); }
  // Whether the connection must not give way to others: it has a request of a known sender that arrives or is
  // being answered, a request that is being answered, or a stream.
  bool is_serving() const { return serving_ || stream_ != nullptr; }
  // Whether the sender of a request on it was known.
  bool is_known() const { return known_; }
  std::chrono::steady_clock::time_point heard() const { return heard_; }

 private:
  using ErrorValue = boost::system::error_code;

  void arm_timer();
  void read(void (HttpConnection::*then)());
  void next_request();
  void receive_body();
  void serve();
  void respond(HttpResponse response);
  // Sends the answer; afterwards the connection stays open only if `keep`.
  void send(HttpResponse response, bool keep);
  void send_body_piece();
  void send_file_piece();
  void sent();
  void open_stream(const HttpResponse& response);
  void stream_on();
  void watch_stream();
  // Closes the connection after an answer without losing it, although the peer may still be sending.
  void end();
  void read_left_over();

  House house_;
  std::unique_ptr<HttpSocket> socket_;
  HttpPeer peer_;
  protocol::Timer timer_;
  std::chrono::steady_clock::time_point heard_ = std::chrono::steady_clock::now();
  RequestReader reader_;
  std::array<char, 16384> piece_{};
  std::string pending_;  // bytes received that are not yet a whole request
  HttpRequest request_;
  std::string out_;
  std::string body_;  // of an answer that is sent in pieces
  std::size_t body_offset_ = 0;
  std::optional<ReadOnlyFile> file_;  // whose bytes are being sent
  std::uint64_t file_offset_ = 0;
  bool head_only_ = false;
  bool keep_ = false;
  bool begun_ = false;  // a part of the next head has arrived
  bool serving_ = false;
  bool known_ = false;
  std::size_t left_over_ = 0;
  std::shared_ptr<HttpEventStream> stream_;
};

}  // namespace fedge::server
