// HTTP requests and responses of the admin pages, and the bytes of a response. Plain data and pure
// functions.
#pragma once

#include <functional>
#include <map>
#include <string>

namespace fedge::server {

struct HttpRequest {
  std::string method;  // as received, for example "GET"
  std::string target;  // as received, for example "/metrics?x=1"
  bool keep_alive = false;

  // Returns the target without its query string.
  std::string path() const { return target.substr(0, target.find('?')); }
};

struct HttpResponse {
  int status = 200;
  std::string body = {};
  std::string content_type = "text/plain; charset=utf-8";
  std::string allow = {};  // allowed methods, for status 405
};

using HttpHandler = std::function<HttpResponse(const HttpRequest&)>;
using HttpPages = std::map<std::string, HttpHandler>;  // by path

// Returns the page's answer, 404 if there is no such page, or 405 for a method other than GET and HEAD.
HttpResponse answer(const HttpPages& pages, const HttpRequest& request);

// Options of to_bytes(). Its output forbids caching and content sniffing; an answer to HEAD has no body.
struct ResponseForm {
  bool head = false;
  bool keep_alive = false;
};
std::string to_bytes(const HttpResponse& response, const ResponseForm& form);

}  // namespace fedge::server
