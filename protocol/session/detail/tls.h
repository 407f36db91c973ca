// TLS 1.3 on a non-blocking socket. OpenSSL reads and writes the socket itself, so a record is copied once
// in each direction; Asio only reports when the socket is ready. Every call returns at once. Errors are
// readable text; bytes of a peer never cause an exception. Private to session/: needs Asio and OpenSSL.
#pragma once

#include <openssl/ssl.h>

#include <boost/asio/ip/tcp.hpp>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "core/crypto/ed25519.h"
#include "core/result.h"
#include "protocol/session/endpoint.h"

namespace fedge::protocol {

// Certificate, key and settings, created once.
class TlsIdentity {
 public:
  struct Free {
    void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
  };
  TlsIdentity(std::unique_ptr<SSL_CTX, Free> context, const PublicKey& key)
      : context_(std::move(context)), key_(key) {}
  SSL_CTX* context() const { return context_.get(); }
  const PublicKey& public_key() const { return key_; }

 private:
  std::unique_ptr<SSL_CTX, Free> context_;
  PublicKey key_;
};

class TlsStream {
 public:
  enum class Outcome {
    kDone,       // made progress: `bytes`
    kWantRead,   // call again when the socket is readable
    kWantWrite,  // call again when the socket is writable
    kClosed,     // the peer has ended its side
    kFailed,     // the connection is unusable: see failure()
  };
  struct Step {
    Outcome outcome = Outcome::kFailed;
    std::size_t bytes = 0;
  };

  // The accepting side accepts any Ed25519 key; the connecting side only `expected`.
  static TlsStream accepting(boost::asio::ip::tcp::socket socket, std::shared_ptr<TlsIdentity> identity);
  static TlsStream connecting(boost::asio::ip::tcp::socket socket, std::shared_ptr<TlsIdentity> identity,
                              const PinnedKey& expected);
  TlsStream(TlsStream&&) noexcept;
  TlsStream& operator=(TlsStream&&) = delete;
  ~TlsStream();

  Step handshake();
  Step read(std::span<std::byte> out);  // at least one byte
  // After kWantRead or kWantWrite, call again with the same bytes.
  Step write(std::span<const std::byte> bytes);
  // Tells the peer that nothing more will be sent.
  Step shutdown();

  boost::asio::ip::tcp::socket& socket() { return socket_; }
  // The peer's key, after the handshake.
  const PublicKey& peer() const { return state_->peer; }
  const PublicKey& own_key() const { return identity_->public_key(); }
  const Error& failure() const { return failure_; }

 private:
  struct FreeSsl {
    void operator()(SSL* ssl) const { SSL_free(ssl); }
  };
  // State for OpenSSL's callbacks; its address stays the same when the stream is moved.
  struct State {
    int fd = -1;
    int last_errno = 0;
    std::optional<PinnedKey> expected;
    PublicKey peer;
    std::optional<Error> refusal;  // why the peer's certificate was refused
  };
  friend struct TlsCallbacks;

  TlsStream(boost::asio::ip::tcp::socket socket, std::shared_ptr<TlsIdentity> identity);
  Step outcome_of(int result, std::size_t bytes);
  Error describe_failure(int ssl_error) const;

  boost::asio::ip::tcp::socket socket_;
  std::shared_ptr<TlsIdentity> identity_;
  std::unique_ptr<State> state_;
  std::unique_ptr<SSL, FreeSsl> ssl_;
  Error failure_;
};

}  // namespace fedge::protocol
