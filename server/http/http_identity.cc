#include "server/http/http_identity.h"

#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>

#include <cerrno>
#include <memory>

#include "core/crypto/random.h"
#include "core/crypto/sha256.h"
#include "core/platform/files.h"
#include "server/http/detail/http_socket.h"

namespace fedge::server {
namespace {

namespace ssl = boost::asio::ssl;

template <class T, void (*free)(T*)>
struct FreeWith {
  void operator()(T* pointer) const { free(pointer); }
};
using PrivateKey = std::unique_ptr<EVP_PKEY, FreeWith<EVP_PKEY, EVP_PKEY_free>>;
using CertificateX509 = std::unique_ptr<X509, FreeWith<X509, X509_free>>;
using Extension = std::unique_ptr<X509_EXTENSION, FreeWith<X509_EXTENSION, X509_EXTENSION_free>>;
struct FreeBio {
  void operator()(BIO* bio) const { BIO_free(bio); }
};
using Memory = std::unique_ptr<BIO, FreeBio>;

constexpr long kTenYears = 10L * 365 * 24 * 3600;

Error openssl_refused(const std::string& what) {
  char text[256];
  ERR_error_string_n(ERR_get_error(), text, sizeof text);
  ERR_clear_error();
  return {ErrorCode::kInvalid, what + ": " + text};
}

std::string text_of(BIO* bio) {
  char* bytes = nullptr;
  const long size = BIO_get_mem_data(bio, &bytes);
  return {bytes, static_cast<std::size_t>(size)};
}

// "DNS:fedge.example.org, IP:192.0.2.7"
std::string alternative_names(const std::vector<std::string>& hosts) {
  std::string names;
  for (const std::string& host : hosts) {
    unsigned char address[16];
    const bool numeric =
        inet_pton(AF_INET, host.c_str(), address) == 1 || inet_pton(AF_INET6, host.c_str(), address) == 1;
    names += (names.empty() ? "" : ", ") + std::string(numeric ? "IP:" : "DNS:") + host;
  }
  return names;
}

bool add_extension(X509* certificate, int nid, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, certificate, certificate, nullptr, nullptr, 0);
  const Extension extension(X509V3_EXT_conf_nid(nullptr, &context, nid, value.c_str()));
  return extension && X509_add_ext(certificate, extension.get(), -1) == 1;
}

CertificateX509 self_signed(EVP_PKEY* key, const std::vector<std::string>& hosts) {
  CertificateX509 certificate(X509_new());
  if (!certificate) return nullptr;
  X509* x = certificate.get();
  X509_NAME* name = X509_get_subject_name(x);
  const auto* common_name = reinterpret_cast<const unsigned char*>("fedge coordinator");
  const bool ok = X509_set_version(x, 2) == 1 &&
                  ASN1_INTEGER_set_uint64(X509_get_serialNumber(x), random_u64() >> 1) == 1 &&
                  X509_gmtime_adj(X509_getm_notBefore(x), -3600) != nullptr &&
                  X509_gmtime_adj(X509_getm_notAfter(x), kTenYears) != nullptr &&
                  X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, common_name, -1, -1, 0) == 1 &&
                  X509_set_issuer_name(x, name) == 1 && X509_set_pubkey(x, key) == 1 &&
                  add_extension(x, NID_subject_alt_name, alternative_names(hosts)) &&
                  add_extension(x, NID_basic_constraints, "critical,CA:FALSE") &&
                  add_extension(x, NID_ext_key_usage, "serverAuth") && X509_sign(x, key, EVP_sha256()) > 0;
  return ok ? std::move(certificate) : nullptr;
}

Result<void> check_private(const std::filesystem::path& key) {
  struct stat info {};
  if (::stat(key.c_str(), &info) != 0) return system_error("cannot open", key, errno);
  if ((info.st_mode & 077) != 0)
    return Error{ErrorCode::kRefused,
                 key.string() + " can be read by other users; run: chmod 600 " + key.string()};
  return {};
}

}  // namespace

Result<std::shared_ptr<HttpIdentity>> load_http_identity(const HttpIdentityFiles& files) {
  FEDGE_TRY_VOID(check_private(files.key));
  auto context = std::make_shared<ssl::context>(ssl::context::tls_server);
  SSL_CTX* raw = context->native_handle();
  SSL_CTX_set_options(raw, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_NO_TICKET);
  SSL_CTX_set_session_cache_mode(raw, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_mode(raw, SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_set_max_early_data(raw, 0);
  if (SSL_CTX_set_min_proto_version(raw, TLS1_3_VERSION) != 1 || SSL_CTX_set_num_tickets(raw, 0) != 1)
    return openssl_refused("OpenSSL cannot be set up for TLS 1.3");
  boost::system::error_code error;
  context->use_certificate_chain_file(files.certificate.string(), error);
  if (error)
    return Error{ErrorCode::kInvalid,
                 files.certificate.string() + " is not a certificate in PEM: " + error.message()};
  context->use_private_key_file(files.key.string(), ssl::context::pem, error);
  if (error)
    return Error{ErrorCode::kInvalid, files.key.string() + " is not the private key in PEM of " +
                                          files.certificate.string() + ": " + error.message()};
  return std::make_shared<HttpIdentity>(std::move(context));
}

Result<void> create_http_identity(const HttpIdentityFiles& files, const std::vector<std::string>& hosts) {
  const PrivateKey key(EVP_EC_gen("P-256"));
  if (!key) return openssl_refused("OpenSSL cannot create a P-256 key");
  const CertificateX509 certificate = self_signed(key.get(), hosts);
  if (!certificate) return openssl_refused("OpenSSL cannot create a certificate");
  const Memory key_text(BIO_new(BIO_s_mem()));
  const Memory certificate_text(BIO_new(BIO_s_mem()));
  if (!key_text || !certificate_text ||
      PEM_write_bio_PrivateKey(key_text.get(), key.get(), nullptr, nullptr, 0, nullptr, nullptr) != 1 ||
      PEM_write_bio_X509(certificate_text.get(), certificate.get()) != 1)
    return openssl_refused("OpenSSL cannot write a certificate");
  FEDGE_TRY_VOID(write_file_atomic(files.key, text_of(key_text.get()), 0600));
  return write_file_atomic(files.certificate, text_of(certificate_text.get()), 0644);
}

std::string fingerprint_of(const HttpIdentity& identity) {
  const X509* certificate = SSL_CTX_get0_certificate(identity.context().native_handle());
  unsigned char* bytes = nullptr;
  const int size = i2d_X509(certificate, &bytes);
  std::string der(reinterpret_cast<char*>(bytes), static_cast<std::size_t>(std::max(size, 0)));
  OPENSSL_free(bytes);
  return to_hex(sha256(der));
}

}  // namespace fedge::server
