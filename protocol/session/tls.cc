#include "protocol/session/detail/tls.h"

#include <openssl/err.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <utility>

#include "core/check.h"
#include "protocol/session/detail/tls_callbacks.h"

namespace fedge::protocol {
namespace {

int clamp_length(std::size_t size) { return static_cast<int>(std::min<std::size_t>(size, INT_MAX)); }

}  // namespace

int TlsCallbacks::verify(X509_STORE_CTX* store, void*) {
  const auto* ssl =
      static_cast<const SSL*>(X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx()));
  auto* state = static_cast<TlsStream::State*>(SSL_get_app_data(ssl));
  const X509* certificate = X509_STORE_CTX_get0_cert(store);
  const EVP_PKEY* key = certificate != nullptr ? X509_get0_pubkey(certificate) : nullptr;
  std::size_t size = state->peer.bytes.size();
  X509_STORE_CTX_set_error(store, X509_V_ERR_CERT_REJECTED);
  if (key == nullptr || EVP_PKEY_get_id(key) != EVP_PKEY_ED25519 ||
      EVP_PKEY_get_raw_public_key(key, state->peer.bytes.data(), &size) != 1 ||
      size != state->peer.bytes.size()) {
    state->refusal =
        Error{ErrorCode::kRefused, "the certificate of the peer does not contain an Ed25519 key"};
    return 0;
  }
  if (state->expected && !state->expected->admits(state->peer)) {
    const auto& next = state->expected->next;
    state->refusal =
        Error{ErrorCode::kRefused, "the public key of the peer is " + to_hex(state->peer) + "; expected " +
                                       to_hex(state->expected->key) + (next ? " or " + to_hex(*next) : "")};
    return 0;
  }
  X509_STORE_CTX_set_error(store, X509_V_OK);
  return 1;
}

int TlsCallbacks::send(BIO* bio, const char* bytes, int length) {
  auto* state = static_cast<TlsStream::State*>(BIO_get_data(bio));
  BIO_clear_retry_flags(bio);
  ssize_t sent = -1;
  do {
    sent = ::send(state->fd, bytes, static_cast<std::size_t>(length), MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) BIO_set_retry_write(bio);
  if (sent < 0) state->last_errno = errno;
  return static_cast<int>(sent);
}

int TlsCallbacks::receive(BIO* bio, char* bytes, int length) {
  auto* state = static_cast<TlsStream::State*>(BIO_get_data(bio));
  BIO_clear_retry_flags(bio);
  ssize_t got = -1;
  do {
    got = ::recv(state->fd, bytes, static_cast<std::size_t>(length), 0);
  } while (got < 0 && errno == EINTR);
  if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) BIO_set_retry_read(bio);
  if (got < 0) state->last_errno = errno;
  if (got == 0) state->last_errno = 0;
  return static_cast<int>(got);
}

long TlsCallbacks::control(BIO*, int command, long, void*) { return command == BIO_CTRL_FLUSH ? 1 : 0; }

BIO_METHOD* TlsCallbacks::socket_method() {
  static BIO_METHOD* const method = [] {
    BIO_METHOD* made = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "fedge socket");
    FEDGE_CHECK(made != nullptr, "OpenSSL has no room for another input and output method");
    BIO_meth_set_write(made, TlsCallbacks::send);
    BIO_meth_set_read(made, TlsCallbacks::receive);
    BIO_meth_set_ctrl(made, TlsCallbacks::control);
    BIO_meth_set_create(made, [](BIO* bio) {
      BIO_set_init(bio, 1);
      return 1;
    });
    return made;
  }();
  return method;
}

TlsStream::TlsStream(boost::asio::ip::tcp::socket socket, std::shared_ptr<TlsIdentity> identity)
    : socket_(std::move(socket)),
      identity_(std::move(identity)),
      state_(std::make_unique<State>()),
      ssl_(SSL_new(identity_->context())) {
  BIO* bio = BIO_new(TlsCallbacks::socket_method());
  if (ssl_ == nullptr || bio == nullptr) throw std::bad_alloc();
  boost::system::error_code ignored;
  socket_.native_non_blocking(true, ignored);
  state_->fd = socket_.native_handle();
  BIO_set_data(bio, state_.get());
  SSL_set_bio(ssl_.get(), bio, bio);
  SSL_set_app_data(ssl_.get(), state_.get());
}

TlsStream::TlsStream(TlsStream&&) noexcept = default;
TlsStream::~TlsStream() = default;

TlsStream TlsStream::accepting(boost::asio::ip::tcp::socket socket, std::shared_ptr<TlsIdentity> identity) {
  TlsStream stream(std::move(socket), std::move(identity));
  SSL_set_accept_state(stream.ssl_.get());
  return stream;
}

TlsStream TlsStream::connecting(boost::asio::ip::tcp::socket socket, std::shared_ptr<TlsIdentity> identity,
                                const PinnedKey& expected) {
  TlsStream stream(std::move(socket), std::move(identity));
  stream.state_->expected = expected;
  SSL_set_connect_state(stream.ssl_.get());
  return stream;
}

TlsStream::Step TlsStream::handshake() {
  ERR_clear_error();
  return outcome_of(SSL_do_handshake(ssl_.get()), 0);
}

TlsStream::Step TlsStream::read(std::span<std::byte> out) {
  ERR_clear_error();
  const int result = SSL_read(ssl_.get(), out.data(), clamp_length(out.size()));
  return outcome_of(result, static_cast<std::size_t>(std::max(result, 0)));
}

TlsStream::Step TlsStream::write(std::span<const std::byte> bytes) {
  ERR_clear_error();
  const int result = SSL_write(ssl_.get(), bytes.data(), clamp_length(bytes.size()));
  return outcome_of(result, static_cast<std::size_t>(std::max(result, 0)));
}

TlsStream::Step TlsStream::shutdown() {
  ERR_clear_error();
  const int result = SSL_shutdown(ssl_.get());
  // Frees the 16 KiB of buffers that the alert was written from; otherwise they last as long as the
  // connection.
  SSL_free_buffers(ssl_.get());
  return outcome_of(result == 0 ? 1 : result, 0);  // 0: our alert is sent, the peer's has not arrived
}

TlsStream::Step TlsStream::outcome_of(int result, std::size_t bytes) {
  if (result > 0) return {Outcome::kDone, bytes};
  const int error = SSL_get_error(ssl_.get(), result);
  if (error == SSL_ERROR_WANT_READ) return {Outcome::kWantRead, 0};
  if (error == SSL_ERROR_WANT_WRITE) return {Outcome::kWantWrite, 0};
  if (error == SSL_ERROR_ZERO_RETURN) return {Outcome::kClosed, 0};
  failure_ = describe_failure(error);
  return {Outcome::kFailed, 0};
}

Error TlsStream::describe_failure(int ssl_error) const {
  if (state_->refusal) return *state_->refusal;
  const unsigned long code = ERR_peek_error();
  if (ssl_error == SSL_ERROR_SYSCALL || ERR_GET_REASON(code) == SSL_R_UNEXPECTED_EOF_WHILE_READING) {
    if (state_->last_errno == 0)
      return {ErrorCode::kUnavailable, "the peer closed the connection without a TLS close message"};
    return {ErrorCode::kUnavailable,
            std::string("the connection broke: ") + std::strerror(state_->last_errno)};
  }
  const char* reason = ERR_reason_error_string(code);
  // An alert is not authenticated: one bit flipped in transit makes an honest peer send one.
  return {ErrorCode::kUnavailable,
          std::string("TLS failed: ") + (reason != nullptr ? reason : "unknown reason")};
}

}  // namespace fedge::protocol
