#include "server/traces/trace_endpoint.h"

#include <algorithm>
#include <string_view>

namespace fedge::server {
namespace {

constexpr std::string_view kHttp = "http://";
constexpr std::size_t kMostPath = 1024;

bool is_path_character(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         std::string_view("/-._~%").find(c) != std::string_view::npos;
}

}  // namespace

Result<TraceEndpoint> parse_trace_endpoint(const std::string& url) {
  const std::string shown = "'" + url.substr(0, 300) + "'";
  if (url.starts_with("https://"))
    return Error{
        ErrorCode::kUnsupported,
        "is " + shown +
            ", but traces are sent only over http://; give the address of an OpenTelemetry collector "
            "on this machine, such as http://127.0.0.1:4318, which forwards them over TLS"};
  if (!url.starts_with(kHttp))
    return invalid("is " + shown + "; write http://HOST:PORT, such as http://127.0.0.1:4318");
  const std::string rest = url.substr(kHttp.size());
  const std::size_t slash = std::min(rest.find('/'), rest.size());
  FEDGE_TRY(address, protocol::parse_address(rest.substr(0, slash)));
  if (address.port == 0) return invalid("is " + shown + ", but the port must not be 0");
  std::string path = rest.substr(slash);
  if (path.size() > kMostPath || !std::ranges::all_of(path, is_path_character))
    return invalid("is " + shown + ", but after the port only a path may follow, of at most " +
                   std::to_string(kMostPath) + " letters, digits and -._~%/");
  if (path.empty() || path.back() != '/') path += '/';
  return TraceEndpoint{std::move(address), path + "v1/traces"};
}

}  // namespace fedge::server
