#include <array>
#include <boost/asio/io_context.hpp>
#include <functional>
#include <utility>

#include "client/daemon.h"
#include "client/discovery/discovery.h"
#include "client/handshake.h"
#include "protocol/session/loop.h"

namespace fedge::client {
namespace {

constexpr std::array kPauses = {0.5, 1.0, 2.0};  // seconds between tries of all addresses
constexpr Duration kJoinSearchPatience = seconds(10);

// Tries the coordinator's addresses in order until one answers, even with a refusal. Retries them a few
// times, then once looks up addresses in the directory.
class Attempt : public std::enable_shared_from_this<Attempt> {
 public:
  Attempt(boost::asio::io_context& io, const JoinOrder& order,
          std::shared_ptr<protocol::TlsIdentity> identity, dht::Directory* directory)
      : io_(io), order_(order), identity_(std::move(identity)), directory_(directory), pause_(io) {
    if (!order.token) return;
    coordinator_.key = order.token->coordinator;
    coordinator_.addresses = order.token->addresses;
  }

  // Calls `done` when the outcome is known.
  void start(std::function<void()> done) {
    done_ = std::move(done);
    coordinator_.addresses.empty() ? look() : try_next();
  }

  Result<protocol::Welcome> outcome =
      Error{ErrorCode::kUnavailable, "there is no coordinator address to connect to"};
  const FoundCoordinator& coordinator() const { return coordinator_; }

 private:
  void try_next() {
    if (next_ == coordinator_.addresses.size()) return try_again();
    protocol::connect(io_, identity_, coordinator_.addresses[next_++], coordinator_.key,
                      [self = shared_from_this()](Result<std::shared_ptr<protocol::Link>> connected) {
                        if (connected) return self->greet_on(*connected);
                        self->outcome = connected.error();
                        self->try_next();
                      });
  }
  void greet_on(const std::shared_ptr<protocol::Link>& link) {
    const std::string secret = order_.token ? order_.token->secret : std::string();
    greet(link, order_.software, secret,
          [self = shared_from_this(), link](Result<protocol::Welcome> welcome) {
            self->outcome = std::move(welcome);
            link->close("joined");
            const bool broken = !self->outcome && self->outcome.error().code == ErrorCode::kUnavailable;
            broken ? self->try_next() : self->done_();
          });
  }
  void try_again() {
    if (pauses_ == kPauses.size()) return look();
    next_ = 0;
    pause_.after(seconds(kPauses[pauses_++]), [self = shared_from_this()] { self->try_next(); });
  }
  void look() {
    if (directory_ == nullptr || std::exchange(looked_, true)) return done_();
    const auto found = [self = shared_from_this()](const Result<FoundCoordinator>& result) {
      if (!result) {
        self->outcome = self->unreached(result.error());
        return self->done_();
      }
      self->coordinator_ = *result;
      self->next_ = 0;
      self->pauses_ = 0;
      self->try_next();
    };
    const SearchTerms terms{io_, *directory_, kJoinSearchPatience};
    const auto known = order_.token ? std::optional(order_.token->coordinator) : order_.coordinator;
    search_ = known ? find_coordinator(terms, *known, found) : find_run(terms, order_.run_name, found);
  }

  // Returns why no address could be found in the directory, after the last failed connection, if any.
  Error unreached(const Error& search) const {
    if (coordinator_.addresses.empty()) return search;
    return {search.code, outcome.error().message + "; the directory does not help either: " + search.message};
  }

  boost::asio::io_context& io_;
  const JoinOrder& order_;
  std::shared_ptr<protocol::TlsIdentity> identity_;
  dht::Directory* directory_;  // null: none
  FoundCoordinator coordinator_;
  std::function<void()> done_;
  protocol::Timer pause_;
  dht::Subscription search_;
  std::size_t next_ = 0;
  std::size_t pauses_ = 0;
  bool looked_ = false;
};

Result<void> check(const JoinOrder& order) {
  if (read_membership(order.state_directory))
    return Error{ErrorCode::kRefused,
                 order.state_directory.string() +
                     " already belongs to a coordinator; use another state directory, or remove "
                     "membership.json from this one to leave that coordinator"};
  if (order.token && order.coordinator && order.token->coordinator != *order.coordinator)
    return Error{ErrorCode::kRefused,
                 "--coordinator names another key than the join token, which is for coordinator " +
                     to_hex(order.token->coordinator)};
  if (order.token && !order.token->addresses.empty()) return {};
  if (!order.directory)
    return invalid(
        "the coordinator's address is not known; use a join token that contains an address, or add "
        "--bootstrap HOST:PORT to search the directory");
  if (!order.token && !order.coordinator && order.run_name.empty())
    return invalid("without a join token, name the coordinator with --run NAME or --coordinator KEY");
  return {};
}

}  // namespace

Result<Joined> join(boost::asio::io_context& io, const JoinOrder& order) {
  FEDGE_TRY_VOID(check(order));
  FEDGE_TRY(key, open_node_key(order.state_directory));
  FEDGE_TRY(identity, protocol::make_tls_identity(key));
  std::unique_ptr<dht::DirectoryNode> node;
  if (order.directory) {
    FEDGE_TRY(opened, dht::DirectoryNode::open(io, *order.directory));
    node = std::move(opened);
  }
  const auto attempt = std::make_shared<Attempt>(io, order, identity, node ? &node->directory() : nullptr);
  // The node never runs out of work, so destroy it; but not within one of its callbacks.
  attempt->start([&] { protocol::post(io, [&] { node.reset(); }); });
  io.run();
  if (!attempt->outcome) return attempt->outcome.error();
  const FoundCoordinator& coordinator = attempt->coordinator();
  Joined joined{{coordinator.addresses, coordinator.key, attempt->outcome->client},
                attempt->outcome->pending};
  FEDGE_TRY(first, first_key_of(order.state_directory, coordinator.key));
  joined.membership.first_key = first;
  FEDGE_TRY_VOID(write_membership(order.state_directory, joined.membership));
  return joined;
}

}  // namespace fedge::client
