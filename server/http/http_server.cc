#include "server/http/http_server.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/basic_socket_acceptor.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <cerrno>
#include <list>
#include <utility>

#include "protocol/session/loop.h"
#include "server/http/detail/http_connection.h"
#include "server/http/unix_path.h"

namespace fedge::server {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using ErrorValue = boost::system::error_code;
using Stream = asio::generic::stream_protocol;

}  // namespace

class HttpServer::Impl : public std::enable_shared_from_this<HttpServer::Impl> {
 public:
  Impl(asio::io_context& io, const HttpOptions& options, std::shared_ptr<HttpService> service)
      : io_(io), options_(options), service_(std::move(service)), acceptor_(io), pause_(io) {}

  Result<void> open() {
    const auto* address = std::get_if<protocol::Address>(&options_.listen);
    FEDGE_TRY_VOID(address != nullptr ? open_tcp(*address) : open_unix());
    accept();
    return {};
  }

  protocol::Address address() const { return listening_; }

  std::size_t connections() const {
    return static_cast<std::size_t>(
        std::count_if(connections_.begin(), connections_.end(), [](const auto& weak) {
          const auto alive = weak.lock();
          return alive && alive->is_open();
        }));
  }

  void stop() {
    if (std::exchange(stopped_, true)) return;
    ErrorValue ignored;
    acceptor_.close(ignored);
    if (const auto* path = std::get_if<std::filesystem::path>(&options_.listen)) {
      std::error_code missing;
      std::filesystem::remove(*path, missing);
    }
    pause_.cancel();
    for (const auto& weak : std::exchange(connections_, {}))
      if (const auto alive = weak.lock()) alive->close();
  }

 private:
  Error cannot_listen(const std::string& where, const ErrorValue& error) const {
    return {ErrorCode::kUnavailable,
            "cannot listen for " + options_.what + " on " + where + ": " + error.message()};
  }

  Result<void> open_tcp(const protocol::Address& wanted) {
    ErrorValue error;
    tcp::resolver resolver(io_);
    const auto found = resolver.resolve(wanted.host, std::to_string(wanted.port),
                                        tcp::resolver::passive | tcp::resolver::numeric_service, error);
    if (!error && found.empty()) error = asio::error::host_not_found;
    tcp::acceptor acceptor(io_);
    if (!error) acceptor.open(found.begin()->endpoint().protocol(), error);
    if (!error) acceptor.set_option(tcp::acceptor::reuse_address(true), error);
    if (!error) acceptor.bind(found.begin()->endpoint(), error);
    if (!error) acceptor.listen(asio::socket_base::max_listen_connections, error);
    const auto local = error ? tcp::endpoint() : acceptor.local_endpoint(error);
    if (!error) acceptor_.assign(Stream(local.protocol()), acceptor.release(error), error);
    if (error) return cannot_listen(protocol::to_string(wanted), error);
    listening_ = {local.address().to_string(), local.port()};
    return {};
  }

  // Only this process's user may connect: the socket has mode 0600 from the beginning.
  Result<void> open_unix() {
    const auto& path = std::get<std::filesystem::path>(options_.listen);
    FEDGE_TRY(short_path, UnixPath::of(path));
    ::unlink(path.c_str());
    ErrorValue error;
    const asio::local::stream_protocol::endpoint endpoint(short_path.text());
    acceptor_.open(Stream(asio::local::stream_protocol()), error);
    const mode_t former = ::umask(0177);
    if (!error) acceptor_.bind(Stream::endpoint(endpoint), error);
    ::umask(former);
    if (!error) acceptor_.listen(asio::socket_base::max_listen_connections, error);
    return error ? Result<void>(cannot_listen(path.string(), error)) : Result<void>();
  }

  void accept() {
    acceptor_.async_accept([self = shared_from_this()](const ErrorValue& error, Stream::socket socket) {
      if (self->stopped_) return;
      if (error) return self->rest();
      self->admit(std::move(socket));
      self->accept();
    });
  }

  // Waits after accept() failed for lack of descriptors or memory: an immediate retry would only use the
  // CPU.
  void rest() {
    pause_.after(std::chrono::milliseconds(100), protocol::weakly(this, [this] { accept(); }));
  }

  // Returns whether there is room for another connection, after closing one that is not being served: a
  // stranger before a known sender, and of them the one silent for longest.
  bool make_room() {
    std::erase_if(connections_, [](const auto& weak) {
      const auto alive = weak.lock();
      return !alive || !alive->is_open();
    });
    if (connections_.size() < options_.max_connections) return true;
    auto oldest = connections_.end();
    for (auto one = connections_.begin(); one != connections_.end(); ++one) {
      const auto connection = one->lock();
      if (connection->is_serving()) continue;
      const auto rank = [](const auto& other) { return std::pair(other->is_known(), other->heard()); };
      if (oldest == connections_.end() || rank(connection) < rank(oldest->lock())) oldest = one;
    }
    if (oldest == connections_.end()) return false;
    oldest->lock()->close();
    connections_.erase(oldest);
    return true;
  }

  void admit(Stream::socket socket) {
    if (!make_room()) return;
    HttpPeer peer = peer_of(socket);
    ErrorValue ignored;
    if (!peer.address.empty()) socket.set_option(tcp::no_delay(true), ignored);
    auto stream = options_.identity ? HttpSocket::tls(std::move(socket), options_.identity)
                                    : HttpSocket::plain(std::move(socket));
    const auto connection = std::make_shared<HttpConnection>(HttpConnection::House{io_, options_, service_},
                                                             std::move(stream), std::move(peer));
    connections_.push_back(connection);
    connection->start();
  }

  asio::io_context& io_;
  HttpOptions options_;
  std::shared_ptr<HttpService> service_;
  asio::basic_socket_acceptor<Stream> acceptor_;
  protocol::Address listening_;
  protocol::Timer pause_;
  std::list<std::weak_ptr<HttpConnection>> connections_;  // each lives while one of its handlers is pending
  bool stopped_ = false;
};

HttpServer::HttpServer(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
HttpServer::~HttpServer() { impl_->stop(); }

Result<std::unique_ptr<HttpServer>> HttpServer::listen(asio::io_context& io, const HttpOptions& options,
                                                       std::shared_ptr<HttpService> service) {
  const auto impl = std::make_shared<Impl>(io, options, std::move(service));
  FEDGE_TRY_VOID(impl->open());
  return std::unique_ptr<HttpServer>(new HttpServer(impl));
}

protocol::Address HttpServer::address() const { return impl_->address(); }
std::size_t HttpServer::connections() const { return impl_->connections(); }
void HttpServer::stop() { impl_->stop(); }

}  // namespace fedge::server
