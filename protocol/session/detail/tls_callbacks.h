// Callbacks for OpenSSL: the check of a peer's certificate, and socket input and output.
#pragma once

#include <openssl/bio.h>
#include <openssl/x509.h>

#include <cstddef>

namespace fedge::protocol {

// Large enough to read several records with one system call.
inline constexpr std::size_t kTlsReadBuffer = 64 << 10;

struct TlsCallbacks {
  // Accepts a certificate for the Ed25519 key in it; the handshake proves that the peer holds the key.
  // There is no certificate authority. Refuses another key if one is expected.
  static int verify(X509_STORE_CTX* store, void* unused);

  static int send(BIO* bio, const char* bytes, int length);
  static int receive(BIO* bio, char* bytes, int length);
  static long control(BIO* bio, int command, long number, void* pointer);
  // Socket input and output without SIGPIPE; shared by all streams.
  static BIO_METHOD* socket_method();
};

}  // namespace fedge::protocol
