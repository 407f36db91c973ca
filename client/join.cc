#include <boost/asio/io_context.hpp>
#include <functional>
#include <utility>

#include "client/daemon.h"
#include "client/handshake.h"

namespace fedge::client {
namespace {

// Tries the token's addresses in order until one answers, even if it refuses.
struct Attempt : std::enable_shared_from_this<Attempt> {
  boost::asio::io_context& io;
  std::shared_ptr<protocol::TlsIdentity> identity;
  const protocol::JoinToken& token;
  std::string software;
  std::size_t next = 0;
  Result<protocol::Welcome> outcome = Error{ErrorCode::kUnavailable, "no coordinator address was tried"};

  Attempt(boost::asio::io_context& context, std::shared_ptr<protocol::TlsIdentity> tls,
          const protocol::JoinToken& join_token, std::string name)
      : io(context), identity(std::move(tls)), token(join_token), software(std::move(name)) {}

  void try_next() {
    if (next == token.addresses.size()) return;
    protocol::connect(io, identity, token.addresses[next++], token.coordinator,
                      [self = shared_from_this()](Result<std::shared_ptr<protocol::Link>> connected) {
                        if (!connected) {
                          self->outcome = connected.error();
                          return self->try_next();
                        }
                        const auto link = *connected;
                        greet(link, self->software, self->token.secret,
                              [self, link](Result<protocol::Welcome> welcome) {
                                self->outcome = std::move(welcome);
                                link->close("joined");
                              });
                      });
  }
};

}  // namespace

Result<Membership> join(boost::asio::io_context& io, const std::filesystem::path& state_directory,
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
  const Membership membership{token.addresses, token.coordinator, attempt->outcome->client};
  FEDGE_TRY_VOID(write_membership(state_directory, membership));
  return membership;
}

}  // namespace fedge::client
