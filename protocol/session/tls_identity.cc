#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/x509.h>

#if defined(__aarch64__) || defined(__arm__)
#include <sys/auxv.h>
#endif

#include "protocol/limits.h"
#include "protocol/session/detail/tls.h"
#include "protocol/session/detail/tls_callbacks.h"
#include "protocol/session/endpoint.h"

namespace fedge::protocol {
namespace {

template <class T, void (*free)(T*)>
struct Free {
  void operator()(T* pointer) const { free(pointer); }
};
using Key = std::unique_ptr<EVP_PKEY, Free<EVP_PKEY, EVP_PKEY_free>>;
using Certificate = std::unique_ptr<X509, Free<X509, X509_free>>;

Error openssl_error(const char* what) {
  char text[256];
  ERR_error_string_n(ERR_get_error(), text, sizeof text);
  ERR_clear_error();
  return {ErrorCode::kUnsupported, std::string(what) + ": " + text};
}

bool has_aes_instructions() {
#if defined(__x86_64__) || defined(__i386__)
  return __builtin_cpu_supports("aes") != 0;
#elif defined(__aarch64__)
  return (getauxval(AT_HWCAP) & (1UL << 3)) != 0;  // HWCAP_AES
#elif defined(__arm__)
  return (getauxval(AT_HWCAP2) & 1UL) != 0;  // HWCAP2_AES
#else
  return false;
#endif
}

// Self-signed; peers check only the key, so the validity covers the full range of X.509 dates.
Certificate make_certificate(EVP_PKEY* key) {
  Certificate certificate(X509_new());
  if (!certificate) return nullptr;
  X509* x = certificate.get();
  X509_NAME* name = X509_get_subject_name(x);
  const auto* common_name = reinterpret_cast<const unsigned char*>("fedge node");
  const bool ok = X509_set_version(x, 2) == 1 && ASN1_INTEGER_set(X509_get_serialNumber(x), 1) == 1 &&
                  ASN1_TIME_set_string_X509(X509_getm_notBefore(x), "20000101000000Z") == 1 &&
                  ASN1_TIME_set_string_X509(X509_getm_notAfter(x), "99991231235959Z") == 1 &&
                  X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, common_name, -1, -1, 0) == 1 &&
                  X509_set_issuer_name(x, name) == 1 && X509_set_pubkey(x, key) == 1 &&
                  X509_sign(x, key, nullptr) > 0;
  return ok ? std::move(certificate) : nullptr;
}

bool configure(SSL_CTX* context) {
  // The accepting side decides on the cipher: AES if both have it in hardware, else ChaCha20.
  const char* ciphers = has_aes_instructions()
                            ? "TLS_AES_128_GCM_SHA256:TLS_CHACHA20_POLY1305_SHA256:TLS_AES_256_GCM_SHA384"
                            : "TLS_CHACHA20_POLY1305_SHA256:TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384";
  SSL_CTX_set_options(context, SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION | SSL_OP_CIPHER_SERVER_PREFERENCE |
                                   SSL_OP_PRIORITIZE_CHACHA | SSL_OP_NO_COMPRESSION);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_max_early_data(context, 0);
  SSL_CTX_set_max_cert_list(context, 4 << 10);
  SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_set_read_ahead(context, 1);
  SSL_CTX_set_default_read_buffer_len(context, kTlsReadBuffer);
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  SSL_CTX_set_cert_verify_callback(context, TlsCallbacks::verify, nullptr);
  return SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION) == 1 &&
         SSL_CTX_set_num_tickets(context, 0) == 1 && SSL_CTX_set_ciphersuites(context, ciphers) == 1 &&
         SSL_CTX_set1_groups_list(context, "X25519") == 1 &&
         SSL_CTX_set1_sigalgs_list(context, "ed25519") == 1;
}

}  // namespace

Result<std::shared_ptr<TlsIdentity>> make_tls_identity(const SecretKey& key) {
  const Key private_key(
      EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, nullptr, key.seed().data(), key.seed().size()));
  if (!private_key) return openssl_error("OpenSSL cannot use an Ed25519 key");
  const Certificate certificate = make_certificate(private_key.get());
  if (!certificate) return openssl_error("OpenSSL cannot make a certificate");
  std::unique_ptr<SSL_CTX, TlsIdentity::Free> context(SSL_CTX_new(TLS_method()));
  if (!context || !configure(context.get()) ||
      SSL_CTX_use_certificate(context.get(), certificate.get()) != 1 ||
      SSL_CTX_use_PrivateKey(context.get(), private_key.get()) != 1)
    return openssl_error("OpenSSL cannot be set up for TLS 1.3 with Ed25519");
  return std::make_shared<TlsIdentity>(std::move(context), key.public_key());
}

}  // namespace fedge::protocol
