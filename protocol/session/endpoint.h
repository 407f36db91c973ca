// Endpoint: opens links. A listener accepts them, connect() opens one. Both sides present a self-signed
// Ed25519 certificate with their node key. The connecting side pins the expected key; the accepting side
// learns the peer's key and lets its owner decide.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
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
// Parses Hello's `listens`: an address, or ":port" without a host. Port 0 is invalid.
Result<Address> parse_listens(const std::string& text);
// Whether both are numeric addresses of the same host; false for names.
bool same_host(const std::string& a, const std::string& b);
// The group whose connections are counted together: an IPv4 address, or the /64 from which an IPv6 host
// chooses freely. Text that is not a numeric address is its own group.
std::string household(const std::string& host);

// The TLS side of a node: certificate and key, shared by all its links.
class TlsIdentity;
Result<std::shared_ptr<TlsIdentity>> make_tls_identity(const SecretKey& key);

// Time limits of a link; the defaults are those of limits.h, tests shorten them.
struct Timeouts {
  std::chrono::milliseconds handshake =
      kHandshakeTimeout;  // for TLS, and again until the Hello is authorised
  std::chrono::milliseconds ping = kPingInterval;
  std::chrono::milliseconds idle = kIdleTimeout;  // a whole multiple of a quarter of `ping`
  std::chrono::milliseconds close = kCloseTimeout;
  std::chrono::milliseconds slow_grace = kSlowGrace;  // before kMinBytesPerSecond is required
  std::chrono::milliseconds refused = kRefusedPause;
};

class Listener {
 public:
  virtual ~Listener() = default;
  virtual Address local_address() const = 0;  // with the actual port if port 0 was requested
  // Later connections see this key; open ones go on.
  virtual void set_identity(std::shared_ptr<TlsIdentity> identity) = 0;
  virtual void stop() = 0;
};

struct ListenOptions {
  Address address;
  std::size_t max_unauthorised = 256;             // links before their Hello
  std::size_t max_unauthorised_per_address = 16;  // of IPv6, a /64 counts as one
  Timeouts timeouts;
  // Called for each connection that ends before it becomes a link, with the reason; may be empty.
  std::function<void(const Address& peer, const Error& why)> on_refused;
};

// `on_link` receives each connection after its TLS handshake. Set the link's callbacks there: it starts to
// read when on_link returns. A link that is not authorised in time is closed. One that was not admitted
// keeps its place in the bounds above for a while, so that repeated attempts use up an address's share.
Result<std::unique_ptr<Listener>> listen(boost::asio::io_context& io, std::shared_ptr<TlsIdentity> identity,
                                         const ListenOptions& options,
                                         std::function<void(std::shared_ptr<Link>)> on_link);

// The key that the accepting side must prove to hold, or the one that it has announced as its next.
struct PinnedKey {
  PinnedKey(const PublicKey& pinned) : key(pinned) {}  // without a next key
  PinnedKey(const PublicKey& pinned, const std::optional<PublicKey>& announced)
      : key(pinned), next(announced) {}
  bool admits(const PublicKey& peer) const { return peer == key || peer == next; }

  PublicKey key;
  std::optional<PublicKey> next;
};

// Opens a connection within the handshake timeout; refuses a peer with another key (kRefused). Set the
// link's callbacks in `done`: it starts to read when `done` returns.
void connect(boost::asio::io_context& io, std::shared_ptr<TlsIdentity> identity, const Address& address,
             const PinnedKey& expected, std::function<void(Result<std::shared_ptr<Link>>)> done,
             const Timeouts& timeouts = {});

}  // namespace fedge::protocol
