#include "bench/transfer/bare_tls.h"

#include <openssl/evp.h>
#include <openssl/x509.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "protocol/limits.h"

namespace fedge::bench {
namespace {

namespace asio = boost::asio;

constexpr std::size_t kPiece = protocol::kDefaultChunkSize;

void use_new_certificate(SSL_CTX* context) {
  EVP_PKEY* key = EVP_EC_gen("P-256");
  X509* certificate = X509_new();
  ASN1_INTEGER_set(X509_get_serialNumber(certificate), 1);
  X509_gmtime_adj(X509_getm_notBefore(certificate), 0);
  X509_gmtime_adj(X509_getm_notAfter(certificate), 3600);
  X509_set_pubkey(certificate, key);
  X509_sign(certificate, key, EVP_sha256());
  if (SSL_CTX_use_certificate(context, certificate) != 1 || SSL_CTX_use_PrivateKey(context, key) != 1)
    give_up("cannot set up the bare TLS server");
  X509_free(certificate);
  EVP_PKEY_free(key);
}

}  // namespace

void give_up(const char* what) {
  std::fprintf(stderr, "benchmark: %s\n", what);
  std::exit(1);
}

asio::ssl::context bare_context(bool server) {
  asio::ssl::context context(server ? asio::ssl::context::tls_server : asio::ssl::context::tls_client);
  SSL_CTX* native = context.native_handle();
  SSL_CTX_set_min_proto_version(native, TLS1_3_VERSION);
  SSL_CTX_set_ciphersuites(native, "TLS_AES_128_GCM_SHA256");
  if (server) use_new_certificate(native);
  return context;
}

void write_all(TlsSocket& stream, std::span<const std::byte> bytes, std::function<void()> done) {
  if (bytes.empty()) return done();
  const auto piece = bytes.first(std::min(kPiece, bytes.size()));
  asio::async_write(stream, asio::buffer(piece.data(), piece.size()),
                    [&stream, rest = bytes.subspan(piece.size()), done = std::move(done)](
                        const boost::system::error_code& error, std::size_t) {
                      if (error) give_up("the bare copy broke while writing");
                      write_all(stream, rest, done);
                    });
}

void read_all(TlsSocket& stream, std::span<std::byte> bytes, std::function<void()> done) {
  if (bytes.empty()) return done();
  const auto piece = bytes.first(std::min(kPiece, bytes.size()));
  asio::async_read(stream, asio::buffer(piece.data(), piece.size()),
                   [&stream, rest = bytes.subspan(piece.size()), done = std::move(done)](
                       const boost::system::error_code& error, std::size_t) {
                     if (error) give_up("the bare copy broke while reading");
                     read_all(stream, rest, done);
                   });
}

}  // namespace fedge::bench
