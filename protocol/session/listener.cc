#include <boost/asio/io_context.hpp>
#include <set>
#include <utility>

#include "protocol/session/admission.h"
#include "protocol/session/detail/descriptor_records.h"
#include "protocol/session/detail/handshake.h"
#include "protocol/session/detail/link_impl.h"
#include "protocol/session/detail/socket_options.h"
#include "protocol/session/endpoint.h"
#include "protocol/session/loop.h"

namespace fedge::protocol {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;

const Error kCrowded{ErrorCode::kResource, "too many connections are waiting for admission"};

class Acceptor : public std::enable_shared_from_this<Acceptor> {
 public:
  Acceptor(asio::io_context& io, std::shared_ptr<TlsIdentity> identity, const ListenOptions& options,
           std::function<void(std::shared_ptr<Link>)> on_link)
      : io_(io),
        identity_(std::move(identity)),
        options_(options),
        on_link_(std::move(on_link)),
        acceptor_(io),
        pause_(io),
        forgiveness_(io),
        admission_(
            std::make_shared<Admission>(options.max_unauthorised, options.max_unauthorised_per_address)),
        handshake_steps_(std::make_shared<StepQueue>(io)) {}

  Result<void> open() {
    boost::system::error_code error;
    tcp::resolver resolver(acceptor_.get_executor());
    const auto found = resolver.resolve(options_.address.host, std::to_string(options_.address.port),
                                        tcp::resolver::passive | tcp::resolver::numeric_service, error);
    if (!error && found.empty()) error = asio::error::host_not_found;
    const auto step = [&](auto action) {
      if (!error) action();
    };
    step([&] { acceptor_.open(found.begin()->endpoint().protocol(), error); });
    step([&] { acceptor_.set_option(tcp::acceptor::reuse_address(true), error); });
    step([&] { acceptor_.bind(found.begin()->endpoint(), error); });
    step([&] { acceptor_.listen(asio::socket_base::max_listen_connections, error); });
    if (error)
      return Error{ErrorCode::kUnavailable,
                   "cannot listen on " + to_string(options_.address) + ": " + error.message()};
    accept();
    return {};
  }

  Address local_address() const {
    boost::system::error_code error;
    const tcp::endpoint endpoint = acceptor_.local_endpoint(error);
    return error ? options_.address : address_of(endpoint);
  }

  void set_identity(std::shared_ptr<TlsIdentity> identity) { identity_ = std::move(identity); }

  void stop() {
    if (std::exchange(stopped_, true)) return;
    boost::system::error_code ignored;
    acceptor_.close(ignored);
    pause_.cancel();
    forgiveness_.cancel();
    on_link_ = nullptr;
    options_.on_refused = nullptr;
    const auto handshakes = std::exchange(handshakes_, {});
    for (const auto& handshake : handshakes)
      handshake->abort({ErrorCode::kUnavailable, "the listener is shutting down"});
  }

 private:
  void accept() {
    acceptor_.async_accept(
        [self = shared_from_this()](const boost::system::error_code& error, tcp::socket socket) {
          if (self->stopped_) return;
          if (error) return self->rest();
          self->receive(std::move(socket));
          self->accept();
        });
  }

  // Pauses after running out of descriptors or memory: an immediate retry would only keep the processor
  // busy.
  void rest() {
    pause_.after(std::chrono::milliseconds(100), [self = shared_from_this()] { self->accept(); });
  }

  void receive(tcp::socket socket) {
    records_.make_room_for(io_, socket.native_handle());
    boost::system::error_code error;
    const tcp::endpoint endpoint = socket.remote_endpoint(error);
    if (error) return;  // disconnected again
    const Address peer = address_of(endpoint);
    auto ticket = admission_->admit(household(peer.host));
    forgive_later();
    if (!ticket) return refused(peer, kCrowded);
    set_socket_options(socket);
    const auto handshake =
        std::make_shared<Handshake>(TlsStream::accepting(std::move(socket), identity_), handshake_steps_);
    handshakes_.insert(handshake);
    ticket->on_evicted(weakly(handshake, [evicted = handshake.get()] { evicted->abort(kCrowded); }));
    const auto held = std::make_shared<std::unique_ptr<Admission::Ticket>>(std::move(ticket));
    handshake->start(options_.timeouts.handshake, [self = shared_from_this(), weak = std::weak_ptr(handshake),
                                                   held, peer](Result<TlsStream> stream) {
      self->handshakes_.erase(weak.lock());
      auto place = std::move(*held);
      if (self->stopped_) return;
      if (!stream) return self->refused(peer, stream.error());
      self->begin_link(std::move(*stream), to_string(peer), std::move(place));
    });
  }

  void refused(const Address& peer, const Error& why) {
    const auto on_refused = options_.on_refused;  // it may stop the listener
    if (on_refused) on_refused(peer, why);
  }

  // Calls forgive() at intervals while any place is taken.
  void forgive_later() {
    if (forgiving_ || admission_->total() == 0) return;
    forgiving_ = true;
    forgiveness_.after(options_.timeouts.refused, [self = shared_from_this()] {
      self->forgiving_ = false;
      self->admission_->forgive();
      self->forgive_later();
    });
  }

  void begin_link(TlsStream stream, const std::string& address, std::unique_ptr<Admission::Ticket> ticket) {
    Admission::Ticket& place = *ticket;
    const auto link =
        std::make_shared<LinkImpl>(std::move(stream), address, options_.timeouts, std::move(ticket));
    place.on_evicted(weakly(link, [evicted = link.get()] { evicted->drop(kCrowded); }));
    const auto on_link = on_link_;  // it may stop the listener
    on_link(link);
    link->start();
  }

  asio::io_context& io_;
  DescriptorRecords records_;
  std::shared_ptr<TlsIdentity> identity_;
  ListenOptions options_;
  std::function<void(std::shared_ptr<Link>)> on_link_;
  tcp::acceptor acceptor_;
  Timer pause_;
  Timer forgiveness_;
  bool forgiving_ = false;
  std::shared_ptr<Admission> admission_;
  std::set<std::shared_ptr<Handshake>> handshakes_;
  std::shared_ptr<StepQueue> handshake_steps_;
  bool stopped_ = false;
};

class AcceptorHandle final : public Listener {
 public:
  explicit AcceptorHandle(std::shared_ptr<Acceptor> acceptor) : acceptor_(std::move(acceptor)) {}
  ~AcceptorHandle() override { acceptor_->stop(); }
  Address local_address() const override { return acceptor_->local_address(); }
  void set_identity(std::shared_ptr<TlsIdentity> identity) override {
    acceptor_->set_identity(std::move(identity));
  }
  void stop() override { acceptor_->stop(); }

 private:
  std::shared_ptr<Acceptor> acceptor_;
};

}  // namespace

Result<std::unique_ptr<Listener>> listen(asio::io_context& io, std::shared_ptr<TlsIdentity> identity,
                                         const ListenOptions& options,
                                         std::function<void(std::shared_ptr<Link>)> on_link) {
  const auto acceptor = std::make_shared<Acceptor>(io, std::move(identity), options, std::move(on_link));
  FEDGE_TRY_VOID(acceptor->open());
  return std::unique_ptr<Listener>(std::make_unique<AcceptorHandle>(acceptor));
}

}  // namespace fedge::protocol
