#include "apps/admin/http_exchange.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509_vfy.h>

#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/host_name_verification.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/http/write.hpp>
#include <limits>

#include "core/crypto/sha256.h"
#include "core/platform/files.h"
#include "server/http/unix_path.h"

namespace fedge::apps {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using asio::ip::tcp;
using ErrorValue = boost::system::error_code;

constexpr std::uint64_t kMostAnswer = std::uint64_t{1} << 30;

std::string hex_of(X509* certificate) {
  unsigned char* bytes = nullptr;
  const int size = certificate == nullptr ? 0 : i2d_X509(certificate, &bytes);
  const std::string der(reinterpret_cast<char*>(bytes), static_cast<std::size_t>(size > 0 ? size : 0));
  OPENSSL_free(bytes);
  return to_hex(sha256(der));
}

// Runs asynchronous steps one after the other, each with a time limit.
class Steps {
 public:
  explicit Steps(std::chrono::seconds patience) : patience_(patience) {}
  asio::io_context& io() { return io_; }
  // `start` begins the step with the handler that it is given; `abandon` makes it end.
  template <class Start>
  ErrorValue run(Start start, const std::function<void()>& abandon) {
    std::optional<ErrorValue> outcome;
    start([&](const ErrorValue& error, auto&&...) { outcome = error; });
    io_.restart();
    const auto until = std::chrono::steady_clock::now() + patience_;
    while (!outcome && io_.run_one_until(until) > 0) continue;
    if (outcome) return *outcome;
    abandon();
    io_.run();
    return asio::error::timed_out;
  }

 private:
  asio::io_context io_;
  std::chrono::seconds patience_;
};

http::request<http::string_body> request_of(const HttpCall& call, const std::string& host) {
  http::request<http::string_body> request;
  request.version(11);
  request.method_string(call.method);
  request.target(call.target);
  request.set(http::field::host, host);
  request.set(http::field::connection, "close");
  request.set(http::field::user_agent, "fedge");
  for (const auto& [name, value] : call.fields) request.set(name, value);
  if (!call.body.empty()) {
    request.set(http::field::content_type, "application/json");
    request.body() = call.body;
  }
  if (call.method != "GET") request.prepare_payload();
  return request;
}

template <class Stream>
Result<HttpResult> talk(Steps& steps, Stream& stream, const std::function<void()>& close,
                        const HttpCall& call, const std::string& host) {
  const auto failed = [&](const ErrorValue& error) {
    return Error{ErrorCode::kUnavailable,
                 "the coordinator at " + host + " did not answer: " + error.message()};
  };
  const auto request = request_of(call, host);
  // A refusal may come before the whole body is sent, so an error in sending is not the last word.
  const ErrorValue sent =
      steps.run([&](auto done) { http::async_write(stream, request, std::move(done)); }, close);
  if (sent == asio::error::timed_out) return failed(sent);
  boost::beast::flat_buffer buffer;
  http::response_parser<http::string_body> parser;
  // Without a limit, some versions of Beast refuse every body of a known length.
  parser.body_limit(call.on_part ? std::numeric_limits<std::uint64_t>::max() : kMostAnswer);
  if (call.method == "HEAD") parser.skip(true);
  while (!parser.is_done()) {
    const ErrorValue error =
        steps.run([&](auto done) { http::async_read_some(stream, buffer, parser, std::move(done)); }, close);
    if (error) return failed(sent ? sent : error);
    std::string& body = parser.get().body();
    if (!call.on_part || body.empty() || parser.get().result_int() != 200) continue;
    if (!call.on_part(std::exchange(body, {}))) break;
  }
  const auto& response = parser.get();
  return HttpResult{static_cast<int>(response.result_int()), response.body(),
                    std::string(response[http::field::etag])};
}

Result<HttpResult> exchange_locally(const std::filesystem::path& path, const HttpCall& call) {
  FEDGE_TRY(short_path, server::UnixPath::of(path));
  Steps steps(call.patience);
  asio::local::stream_protocol::socket socket(steps.io());
  const auto close = [&] {
    ErrorValue ignored;
    socket.close(ignored);
  };
  const ErrorValue error = steps.run(
      [&](auto done) {
        socket.async_connect(asio::local::stream_protocol::endpoint(short_path.text()), std::move(done));
      },
      close);
  if (error == boost::system::errc::no_such_file_or_directory || error == asio::error::connection_refused)
    return Error{ErrorCode::kNotFound, "no coordinator listens on " + path.string()};
  if (error) return system_error("cannot connect to", path, error.value());
  return talk(steps, socket, close, call, "localhost");
}

// Connects with TLS. `fingerprint` receives that of the server's certificate. With `pinned`, any certificate
// is accepted here, and the caller compares.
struct Secured {
  asio::ssl::context context{asio::ssl::context::tls_client};
  std::optional<asio::ssl::stream<tcp::socket>> stream;
  std::string fingerprint;

  Result<void> connect(Steps& steps, const protocol::Address& address, bool pinned) {
    const std::string where = protocol::to_string(address);
    SSL_CTX_set_min_proto_version(context.native_handle(), TLS1_3_VERSION);
    ErrorValue error;
    if (!pinned) context.set_default_verify_paths(error);
    context.set_verify_mode(pinned ? asio::ssl::verify_none : asio::ssl::verify_peer);
    stream.emplace(steps.io(), context);
    const auto close = [&] { close_now(); };
    tcp::resolver resolver(steps.io());
    const auto found = resolver.resolve(address.host, std::to_string(address.port), error);
    if (error)
      return Error{ErrorCode::kUnavailable, "cannot find the host of " + where + ": " + error.message()};
    for (const auto& one : found) {
      close_now();
      stream->next_layer() = tcp::socket(steps.io());
      error = steps.run(
          [&](auto done) { stream->next_layer().async_connect(one.endpoint(), std::move(done)); }, close);
      if (!error) break;
    }
    if (error) return Error{ErrorCode::kUnavailable, "cannot connect to " + where + ": " + error.message()};
    ErrorValue is_name;
    (void)asio::ip::make_address(address.host, is_name);
    if (is_name)
      SSL_ctrl(stream->native_handle(), SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name,
               const_cast<char*>(address.host.c_str()));
    if (!pinned) stream->set_verify_callback(asio::ssl::host_name_verification(address.host));
    error = steps.run(
        [&](auto done) { stream->async_handshake(asio::ssl::stream_base::client, std::move(done)); }, close);
    const long verified = SSL_get_verify_result(stream->native_handle());
    if (error && !pinned && verified != X509_V_OK)
      return Error{
          verified == X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT ? ErrorCode::kUnsupported : ErrorCode::kRefused,
          "the certificate of " + where + " is not trusted: " + X509_verify_cert_error_string(verified)};
    if (error) return Error{ErrorCode::kUnavailable, "TLS with " + where + " failed: " + error.message()};
    X509* certificate = SSL_get1_peer_certificate(stream->native_handle());
    fingerprint = hex_of(certificate);
    X509_free(certificate);
    return {};
  }
  void close_now() {
    ErrorValue ignored;
    stream->next_layer().close(ignored);
  }
};

Result<HttpResult> exchange_remotely(const HttpsPlace& place, const HttpCall& call) {
  Steps steps(call.patience);
  Secured link;
  FEDGE_TRY_VOID(link.connect(steps, place.address, !place.fingerprint.empty()));
  if (!place.fingerprint.empty() && link.fingerprint != place.fingerprint)
    return Error{ErrorCode::kRefused, "the certificate of " + protocol::to_string(place.address) +
                                          " has the fingerprint " + link.fingerprint +
                                          ", but 'fedge login' stored " + place.fingerprint +
                                          "; if the coordinator has a new certificate, log in again"};
  return talk(
      steps, *link.stream, [&] { link.close_now(); }, call, protocol::to_string(place.address));
}

}  // namespace

Result<HttpResult> send_request(const HttpPlace& place, const HttpCall& call) {
  if (const auto* path = std::get_if<std::filesystem::path>(&place)) return exchange_locally(*path, call);
  return exchange_remotely(std::get<HttpsPlace>(place), call);
}

Result<std::string> certificate_of(const protocol::Address& address) {
  Steps steps(std::chrono::seconds(30));
  Secured link;
  FEDGE_TRY_VOID(link.connect(steps, address, /*pinned=*/true));
  link.close_now();
  return link.fingerprint;
}

}  // namespace fedge::apps
