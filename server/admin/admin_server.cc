#include "server/admin/admin_server.h"

#include <algorithm>
#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/write.hpp>
#include <list>
#include <utility>

#include "protocol/session/loop.h"
#include "server/admin/request_reader.h"

namespace fedge::server {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using ErrorValue = boost::system::error_code;

// Bytes that a peer may still send after its last answer: closing the socket at once could discard the
// answer.
constexpr std::size_t kMaxLeftOver = 256 << 10;

HttpResponse refusal(const Error& error) {
  const int status = error.code == ErrorCode::kResource      ? 431
                     : error.code == ErrorCode::kUnsupported ? 505
                                                             : 400;
  return {.status = status, .body = error.message + "\n"};
}

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(asio::io_context& io, tcp::socket socket, const HttpPages& pages,
             std::chrono::milliseconds timeout)
      : socket_(std::move(socket)), timer_(io), pages_(pages), timeout_(timeout) {}

  void start() {
    arm_timer();
    read();
  }
  void close() {
    ErrorValue ignored;
    socket_.close(ignored);
    timer_.cancel();
  }
  bool is_open() const { return socket_.is_open(); }
  std::chrono::steady_clock::time_point heard() const { return heard_; }

 private:
  void arm_timer() {
    timer_.after(timeout_, protocol::weakly(this, [this] { close(); }));
  }

  void read() {
    socket_.async_read_some(asio::buffer(piece_),
                            [self = shared_from_this()](const ErrorValue& error, std::size_t size) {
                              if (error || !self->is_open()) return self->close();
                              self->pending_.append(self->piece_.data(), size);
                              self->next_request();
                            });
  }

  void next_request() {
    const auto size = reader_.take(pending_);
    if (!size) return send(to_bytes(refusal(size.error()), {}), false);
    if (*size == 0) return read();
    pending_.erase(0, *size);
    heard_ = std::chrono::steady_clock::now();
    const HttpRequest request = reader_.request();
    const bool head = request.method == "HEAD";
    send(to_bytes(answer(pages_, request), {.head = head, .keep_alive = request.keep_alive}),
         request.keep_alive);
  }

  void send(std::string bytes, bool keep) {
    out_ = std::move(bytes);
    arm_timer();
    asio::async_write(socket_, asio::buffer(out_),
                      [self = shared_from_this(), keep](const ErrorValue& error, std::size_t) {
                        if (error || !self->is_open()) return self->close();
                        self->out_.clear();
                        if (!keep) return self->end();
                        self->arm_timer();
                        self->next_request();
                      });
  }

  void end() {
    ErrorValue ignored;
    socket_.shutdown(tcp::socket::shutdown_send, ignored);
    read_left_over();
  }
  void read_left_over() {
    socket_.async_read_some(asio::buffer(piece_),
                            [self = shared_from_this()](const ErrorValue& error, std::size_t size) {
                              self->left_over_ += size;
                              if (error || self->left_over_ > kMaxLeftOver) return self->close();
                              self->read_left_over();
                            });
  }

  tcp::socket socket_;
  protocol::Timer timer_;
  const HttpPages& pages_;
  std::chrono::milliseconds timeout_;
  std::chrono::steady_clock::time_point heard_ = std::chrono::steady_clock::now();
  RequestReader reader_;
  std::array<char, 4096> piece_{};
  std::string pending_;  // bytes received that are not yet a whole request
  std::string out_;
  std::size_t left_over_ = 0;
};

}  // namespace

class AdminServer::Impl : public std::enable_shared_from_this<AdminServer::Impl> {
 public:
  Impl(asio::io_context& io, const AdminOptions& options, HttpPages pages)
      : io_(io), options_(options), pages_(std::move(pages)), acceptor_(io), pause_(io) {}

  Result<void> open() {
    ErrorValue error;
    tcp::resolver resolver(acceptor_.get_executor());
    const auto found = resolver.resolve(options_.listen.host, std::to_string(options_.listen.port),
                                        tcp::resolver::passive | tcp::resolver::numeric_service, error);
    if (!error && found.empty()) error = asio::error::host_not_found;
    if (!error) acceptor_.open(found.begin()->endpoint().protocol(), error);
    if (!error) acceptor_.set_option(tcp::acceptor::reuse_address(true), error);
    if (!error) acceptor_.bind(found.begin()->endpoint(), error);
    if (!error) acceptor_.listen(asio::socket_base::max_listen_connections, error);
    if (error)
      return Error{ErrorCode::kUnavailable, "cannot listen for the admin endpoint on " +
                                                protocol::to_string(options_.listen) + ": " +
                                                error.message()};
    accept();
    return {};
  }

  protocol::Address address() const {
    ErrorValue error;
    const tcp::endpoint endpoint = acceptor_.local_endpoint(error);
    return error ? options_.listen : protocol::Address{endpoint.address().to_string(), endpoint.port()};
  }

  std::size_t connections() const {
    return static_cast<std::size_t>(
        std::count_if(connections_.begin(), connections_.end(), [](const auto& weak) {
          const auto alive = weak.lock();
          return alive && alive->is_open();
        }));
  }

  void stop() {
    stopped_ = true;
    ErrorValue ignored;
    acceptor_.close(ignored);
    pause_.cancel();
    for (const auto& weak : std::exchange(connections_, {}))
      if (const auto alive = weak.lock()) alive->close();
  }

 private:
  void accept() {
    acceptor_.async_accept([self = shared_from_this()](const ErrorValue& error, tcp::socket socket) {
      if (self->stopped_) return;
      if (error) return self->rest();
      self->admit(std::move(socket));
      self->accept();
    });
  }

  // Waits after accept() failed for lack of descriptors or memory: an immediate retry would only use the
  // CPU.
  void rest() {
    pause_.after(std::chrono::milliseconds(100), [self = shared_from_this()] { self->accept(); });
  }

  void admit(tcp::socket socket) {
    std::erase_if(connections_, [](const auto& weak) {
      const auto alive = weak.lock();
      return !alive || !alive->is_open();
    });
    if (connections_.size() >= options_.max_connections && !connections_.empty()) {
      const auto oldest = std::min_element(
          connections_.begin(), connections_.end(),
          [](const auto& a, const auto& b) { return a.lock()->heard() < b.lock()->heard(); });
      oldest->lock()->close();
      connections_.erase(oldest);
    }
    ErrorValue ignored;
    socket.set_option(tcp::no_delay(true), ignored);
    const auto connection = std::make_shared<Connection>(io_, std::move(socket), pages_, options_.timeout);
    connections_.push_back(connection);
    connection->start();
  }

  asio::io_context& io_;
  AdminOptions options_;
  HttpPages pages_;
  tcp::acceptor acceptor_;
  protocol::Timer pause_;
  std::list<std::weak_ptr<Connection>> connections_;  // each lives while one of its handlers is pending
  bool stopped_ = false;
};

AdminServer::AdminServer(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
AdminServer::~AdminServer() { impl_->stop(); }

Result<std::unique_ptr<AdminServer>> AdminServer::listen(asio::io_context& io, const AdminOptions& options,
                                                         HttpPages pages) {
  const auto impl = std::make_shared<Impl>(io, options, std::move(pages));
  FEDGE_TRY_VOID(impl->open());
  return std::unique_ptr<AdminServer>(new AdminServer(impl));
}

protocol::Address AdminServer::address() const { return impl_->address(); }
std::size_t AdminServer::connections() const { return impl_->connections(); }
void AdminServer::stop() { impl_->stop(); }

}  // namespace fedge::server
