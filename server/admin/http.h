// HTTP as the admin pages need it: what a handler is asked and what it answers. Plain data, no thread rule.
#pragma once

#include <functional>
#include <string>

namespace fedge::server {

struct HttpRequest {
  std::string method;  // "GET"; whatever the peer wrote, if it is a token of RFC 9110
  std::string target;  // "/metrics?x=1", as it came; printable ASCII
  bool keep_alive = false;

  // Without what follows a question mark.
  std::string path() const { return target.substr(0, target.find('?')); }
};

struct HttpResponse {
  int status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::string body;
};

using HttpHandler = std::function<HttpResponse(const HttpRequest&)>;

}  // namespace fedge::server
