// HTTP as the admin pages need it: what a handler is asked, what it answers, and the bytes of that. Plain
// data and pure functions, no thread rule.
#pragma once

#include <functional>
#include <map>
#include <string>

namespace fedge::server {

struct HttpRequest {
  std::string method;  // "GET", or whatever else the peer wrote
  std::string target;  // "/metrics?x=1", as it came
  bool keep_alive = false;

  // Without what follows a question mark.
  std::string path() const { return target.substr(0, target.find('?')); }
};

struct HttpResponse {
  int status = 200;
  std::string body = {};
  std::string content_type = "text/plain; charset=utf-8";
  std::string allow = {};  // methods, if this one is not allowed
};

using HttpHandler = std::function<HttpResponse(const HttpRequest&)>;
using HttpPages = std::map<std::string, HttpHandler>;  // by path

// What the page answers: 404 if there is none, 405 for another method than GET and HEAD.
HttpResponse answer(const HttpPages& pages, const HttpRequest& request);

// The response's bytes. Nobody may keep it or take it for another type than it has; of a HEAD's answer the
// body stays away.
struct ResponseForm {
  bool head = false;
  bool keep_alive = false;
};
std::string to_bytes(const HttpResponse& response, const ResponseForm& form);

}  // namespace fedge::server
