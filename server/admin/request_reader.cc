#include "server/admin/request_reader.h"

#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <utility>

namespace fedge::server {
namespace {

namespace http = boost::beast::http;

constexpr std::string_view kEndOfHead = "\r\n\r\n";

// Bytes that no HTTP head contains. They indicate TLS or another protocol, so the request is refused at
// once.
bool is_foreign(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return (byte < 0x20 && c != '\r' && c != '\n' && c != '\t') || byte == 0x7f;
}

Result<HttpRequest> parse_head(std::string_view head) {
  http::request_parser<http::empty_body> parser;
  parser.header_limit(static_cast<std::uint32_t>(kMaxRequestHead));
  parser.eager(false);
  boost::system::error_code error;
  parser.put(boost::asio::buffer(head), error);
  if (error == http::error::bad_version)
    return Error{ErrorCode::kUnsupported, "this server supports only HTTP/1.0 and HTTP/1.1"};
  if (error) return invalid("this is not an HTTP request: " + error.message());
  if (!parser.is_header_done()) return invalid("this is not an HTTP request: the header is incomplete");
  if (parser.chunked() || parser.content_length().value_or(0) > 0)
    return invalid("the request must not have a body");
  const auto& fields = parser.get();
  if (fields.version() >= 11 && fields.count(http::field::host) != 1)
    return invalid("an HTTP/1.1 request needs exactly one Host header");
  if (fields.target().starts_with('?')) return invalid("the target of the request has no path");
  return HttpRequest{std::string(fields.method_string()), std::string(fields.target()), parser.keep_alive()};
}

}  // namespace

class RequestReader::Impl {
 public:
  Result<std::size_t> take(std::string_view bytes) {
    for (; searched_ < bytes.size(); ++searched_) {
      if (searched_ == kMaxRequestHead)
        return Error{ErrorCode::kResource, "the header of a request may have at most " +
                                               std::to_string(kMaxRequestHead) + " bytes"};
      if (is_foreign(bytes[searched_]))
        return invalid("this is not an HTTP request: it contains a control character");
      const std::string_view head = bytes.substr(0, searched_ + 1);
      if (!head.ends_with(kEndOfHead)) continue;
      FEDGE_TRY(request, parse_head(head));
      request_ = std::move(request);
      return head.size();
    }
    return std::size_t{0};
  }
  HttpRequest request() {
    searched_ = 0;
    return std::move(request_);
  }

 private:
  std::size_t searched_ = 0;  // bytes searched without finding the end of the head
  HttpRequest request_;
};

RequestReader::RequestReader() : impl_(std::make_unique<Impl>()) {}
RequestReader::~RequestReader() = default;
RequestReader::RequestReader(RequestReader&&) noexcept = default;
RequestReader& RequestReader::operator=(RequestReader&&) noexcept = default;

Result<std::size_t> RequestReader::take(std::string_view bytes) { return impl_->take(bytes); }
HttpRequest RequestReader::request() { return impl_->request(); }

}  // namespace fedge::server
