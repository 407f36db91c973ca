#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <functional>
#include <utility>

#include "client/daemon.h"
#include "client/handshake.h"

namespace fedge::client {
namespace {

constexpr std::array kPauses = {0.5, 1.0, 2.0};  // seconds between tries of all addresses

// Tries the token's addresses in order until one answers, even if it refuses; then a few times again.
struct Attempt : std::enable_shared_from_this<Attempt> {
  boost::asio::io_context& io;
  std::shared_ptr<protocol::TlsIdentity> identity;
  const protocol::JoinToken& token;
  std::string software;
  boost::asio::steady_timer pause{io};
  std::size_t next = 0;
  std::size_t pauses = 0;
  Result<protocol::Welcome> outcome = Error{ErrorCode::kUnavailable, "no coordinator address was tried"};

  Attempt(boost::asio::io_context& context, std::shared_ptr<protocol::TlsIdentity> tls,
          const protocol::JoinToken& join_token, std::string name)
      : io(context), identity(std::move(tls)), token(join_token), software(std::move(name)) {}

  void try_next() {
    if (next == token.addresses.size()) return try_again();
    protocol::connect(
        io, identity, token.addresses[next++], token.coordinator,
        [self = shared_from_this()](Result<std::shared_ptr<protocol::Link>> connected) {
          if (!connected) {
            self->outcome = connected.error();
            return self->try_next();
          }
          const auto link = *connected;
          greet(link, self->software, self->token.secret, [self, link](Result<protocol::Welcome> welcome) {
            self->outcome = std::move(welcome);
            link->close("joined");
            const bool broken = !self->outcome && self->outcome.error().code == ErrorCode::kUnavailable;
            if (broken) self->try_next();
          });
        });
  }
  void try_again() {
    if (pauses == kPauses.size()) return;
    next = 0;
    pause.expires_after(std::chrono::duration_cast<std::chrono::steady_clock::duration>(
        std::chrono::duration<double>(kPauses[pauses++])));
    pause.async_wait([self = shared_from_this()](const boost::system::error_code&) { self->try_next(); });
  }
};

}  // namespace

Result<Joined> join(boost::asio::io_context& io, const std::filesystem::path& state_directory,
                    const protocol::JoinToken& token, const std::string& software) {
  if (read_membership(state_directory))
    return Error{ErrorCode::kRefused,
                 state_directory.string() +
                     " already belongs to a coordinator; use another state directory, or remove "
                     "membership.json there to leave it"};
  FEDGE_TRY(key, open_node_key(state_directory));
  FEDGE_TRY(identity, protocol::make_tls_identity(key));
  const auto attempt = std::make_shared<Attempt>(io, identity, token, software);
  attempt->try_next();
  io.run();
  if (!attempt->outcome) return attempt->outcome.error();
  Joined joined{{token.addresses, token.coordinator, attempt->outcome->client}, attempt->outcome->pending};
  FEDGE_TRY_VOID(write_membership(state_directory, joined.membership));
  return joined;
}

}  // namespace fedge::client
