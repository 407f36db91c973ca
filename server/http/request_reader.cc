#include "server/http/request_reader.h"

#include <algorithm>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <limits>
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
  parser.body_limit(std::numeric_limits<std::uint64_t>::max());  // the caller decides
  boost::system::error_code error;
  parser.put(boost::asio::buffer(head), error);
  if (error == http::error::bad_version)
    return Error{ErrorCode::kUnsupported, "this server supports only HTTP/1.0 and HTTP/1.1"};
  if (error) return invalid("this is not an HTTP request: " + error.message());
  if (!parser.is_header_done()) return invalid("this is not an HTTP request: the header is incomplete");
  const auto& fields = parser.get();
  if (fields.count(http::field::transfer_encoding) > 0)
    return Error{ErrorCode::kRefused,
                 "a request with a body needs a Content-Length; chunks are not accepted"};
  if (fields.version() >= 11 && fields.count(http::field::host) != 1)
    return invalid("an HTTP/1.1 request needs exactly one Host header");
  if (fields.target().starts_with('?')) return invalid("the target of the request has no path");
  HttpRequest request{.method = std::string(fields.method_string()),
                      .target = std::string(fields.target()),
                      .keep_alive = parser.keep_alive(),
                      .announced_body = parser.content_length().value_or(0)};
  for (const auto& field : fields) {
    std::string name(field.name_string());
    std::ranges::transform(name, name.begin(), [](char c) {
      return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    });
    request.fields.emplace_back(std::move(name), std::string(field.value()));
  }
  return request;
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
