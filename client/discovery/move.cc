#include "client/discovery/move.h"

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include "client/handshake.h"
#include "core/platform/files.h"

namespace fedge::client {
namespace {

struct Answer {
  std::optional<ClientId> client;  // nothing: an operator must still approve it
  PublicKey key;                   // that the coordinator has proved
};

// Greets the coordinator at each address in turn, until one answers, even with a refusal.
class Visit : public std::enable_shared_from_this<Visit> {
 public:
  Visit(boost::asio::io_context& io, const MoveOrder& order, const Membership& membership,
        std::shared_ptr<protocol::TlsIdentity> identity)
      : io_(io), order_(order), membership_(membership), identity_(std::move(identity)) {}

  void start() { try_next(); }

  Result<Answer> outcome = Error{ErrorCode::kUnavailable, "there is no address to connect to"};

 private:
  void try_next() {
    if (next_ == membership_.coordinators.size()) return;
    protocol::connect(io_, identity_, membership_.coordinators[next_++], membership_.pinned(),
                      [self = shared_from_this()](Result<std::shared_ptr<protocol::Link>> connected) {
                        if (connected) return self->greet_on(*connected);
                        self->outcome = connected.error();
                        self->try_next();
                      });
  }
  void greet_on(const std::shared_ptr<protocol::Link>& link) {
    const Greeting greeting{.software = order_.software,
                            .on_goodbye = [self = shared_from_this(), link](const auto& goodbye) {
                              // It has proved its key, and speaks to this client: it is the coordinator.
                              if (goodbye.code == ErrorCode::kUnavailable)
                                self->outcome = Answer{std::nullopt, link->peer()};
                            }};
    greet(link, greeting, [self = shared_from_this(), link](Result<protocol::Welcome> welcome) {
      link->close("moved");
      if (welcome) self->outcome = Answer{welcome->client, link->peer()};
      if (welcome || self->outcome) return;
      self->outcome = welcome.error();
      if (welcome.error().code == ErrorCode::kUnavailable) self->try_next();
    });
  }

  boost::asio::io_context& io_;
  const MoveOrder& order_;
  const Membership& membership_;
  std::shared_ptr<protocol::TlsIdentity> identity_;
  std::size_t next_ = 0;
};

Result<DirectoryLock> lock_of(const MoveOrder& order) {
  auto lock = DirectoryLock::acquire(order.state_directory);
  if (lock || lock.error().code != ErrorCode::kUnavailable) return lock;
  return Error{ErrorCode::kUnavailable, "a client daemon runs in " + order.state_directory.string() +
                                            "; stop it, repeat this command, and start it again"};
}

}  // namespace

Result<Membership> move(boost::asio::io_context& io, const MoveOrder& order) {
  FEDGE_TRY(before, read_membership(order.state_directory, order.program));  // says how to join
  FEDGE_TRY(lock, lock_of(order));
  // Read again: a daemon may have written it until it ended.
  FEDGE_TRY(membership, read_membership(order.state_directory, order.program));
  if (!order.addresses.empty()) membership.coordinators = order.addresses;
  // The owner names the key, so an announced one counts for nothing: somebody else may have announced it.
  if (order.key)
    *order.key == membership.coordinator_key ? membership.next_key.reset() : membership.take_key(*order.key);
  if (order.check) {
    FEDGE_TRY(key, open_node_key(order.state_directory));
    FEDGE_TRY(identity, protocol::make_tls_identity(key));
    const auto visit = std::make_shared<Visit>(io, order, membership, std::move(identity));
    visit->start();
    io.run();
    if (!visit->outcome) return visit->outcome.error().with_prefix("nothing was changed: ");
    const Answer& answer = *visit->outcome;
    if (answer.client && *answer.client != membership.client)
      return Error{ErrorCode::kRefused,
                   "nothing was changed: the coordinator there knows this device as client " +
                       std::to_string(answer.client->value()) + ", but it is client " +
                       std::to_string(membership.client.value()) + " of its own coordinator"};
    if (answer.key != membership.coordinator_key) membership.take_key(answer.key);  // the announced one
  }
  FEDGE_TRY_VOID(write_membership(order.state_directory, membership));
  return membership;
}

}  // namespace fedge::client
