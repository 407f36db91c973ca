#include "server/admin/http.h"

namespace fedge::server {
namespace {

const char* phrase(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 400:
      return "Bad Request";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 431:
      return "Request Header Fields Too Large";
    case 503:
      return "Service Unavailable";
    case 505:
      return "HTTP Version Not Supported";
    default:
      return "Error";
  }
}

}  // namespace

HttpResponse answer(const HttpPages& pages, const HttpRequest& request) {
  const auto page = pages.find(request.path());
  if (page == pages.end())
    return {.status = 404, .body = "there is no such page; try /metrics, /healthz or /readyz\n"};
  if (request.method != "GET" && request.method != "HEAD")
    return {.status = 405, .body = "this server answers only GET and HEAD\n", .allow = "GET, HEAD"};
  return page->second(request);
}

std::string to_bytes(const HttpResponse& response, const ResponseForm& form) {
  std::string bytes = "HTTP/1.1 " + std::to_string(response.status) + " " + phrase(response.status) + "\r\n";
  const auto field = [&](const char* name, const std::string& value) {
    bytes.append(name).append(": ").append(value).append("\r\n");
  };
  field("Content-Type", response.content_type);
  field("Content-Length", std::to_string(response.body.size()));
  field("Cache-Control", "no-store");
  field("X-Content-Type-Options", "nosniff");
  if (!response.allow.empty()) field("Allow", response.allow);
  field("Connection", form.keep_alive ? "keep-alive" : "close");
  bytes += "\r\n";
  if (!form.head) bytes += response.body;
  return bytes;
}

}  // namespace fedge::server
