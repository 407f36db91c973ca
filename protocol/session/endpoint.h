// Endpoint: makes links. A listener accepts them, connect() opens one. Both sides present a
// self-signed Ed25519 certificate made from their node key; the connecting side pins the key it
// expects, the accepting side learns the peer's key and lets its owner decide.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "core/crypto/ed25519.h"
#include "core/result.h"
#include "protocol/limits.h"
#include "protocol/session/link.h"

namespace boost::asio {
class io_context;
}

namespace fedge::protocol {

struct Address {
  std::string host;  // IP address or DNS name
  std::uint16_t port = 0;
  bool operator==(const Address&) const = default;
};
Result<Address> parse_address(const std::string& text);  // "host:port", "[::1]:7000"
std::string to_string(const Address& address);
// Hello's `listens`: likewise, or ":port" of a host that is not said. No port 0.
Result<Address> parse_listens(const std::string& text);
// Whether both are the number of the same host; a name is no number.
bool same_host(const std::string& a, const std::string& b);
// Whose connections count together: an IPv4 address, or the /64 that an IPv6 host can choose from freely.
// For numeric addresses; anything else is its own.
std::string household(const std::string& host);

// The TLS side of a node: certificate and key, shared by all its links.
class TlsIdentity;
Result<std::shared_ptr<TlsIdentity>> make_tls_identity(const SecretKey& key);

// How long a link waits; the defaults are those of limits.h, tests shorten them.
struct Timeouts {
  std::chrono::milliseconds handshake =
      kHandshakeTimeout;  // for TLS, and again for the Hello to be authorised
  std::chrono::milliseconds ping = kPingInterval;
  std::chrono::milliseconds idle = kIdleTimeout;  // a whole multiple of a quarter of `ping`
  std::chrono::milliseconds close = kCloseTimeout;
  std::chrono::milliseconds slow_grace = kSlowGrace;  // before kMinBytesPerSecond is asked for
  std::chrono::milliseconds refused = kRefusedPause;
};

class Listener {
 public:
  virtual ~Listener() = default;
  virtual Address local_address() const = 0;  // with the real port when 0 was asked for
  virtual void stop() = 0;
};

struct ListenOptions {
  Address address;
  std::size_t max_unauthorised = 256;             // links still before their Hello
  std::size_t max_unauthorised_per_address = 16;  // of IPv6, a /64 counts as one
  Timeouts timeouts;
  // Told of each connection that ends before it is a link, and why; may be empty.
  std::function<void(const Address& peer, const Error& why)> on_refused;
};

// `on_link` gets each connection whose TLS handshake has completed; it starts to read when on_link
// returns, so set its callbacks there. One that is not authorised in time is closed. One that was not let in
// keeps its place in the bounds above for a while, so that trying again and again costs an address its share.
Result<std::unique_ptr<Listener>> listen(boost::asio::io_context& io, std::shared_ptr<TlsIdentity> identity,
                                         const ListenOptions& options,
                                         std::function<void(std::shared_ptr<Link>)> on_link);

// Opens a connection within the handshake timeout; a peer with another key is refused (kRefused). The
// link starts to read when `done` returns, so set its callbacks there.
void connect(boost::asio::io_context& io, std::shared_ptr<TlsIdentity> identity, const Address& address,
             const PublicKey& expected, std::function<void(Result<std::shared_ptr<Link>>)> done,
             const Timeouts& timeouts = {});

}  // namespace fedge::protocol
