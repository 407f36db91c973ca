// HTTP requests, answers and services, without sockets. Plain data and pure functions. HttpServer receives
// requests and sends answers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace fedge::server {

// The other end of a connection.
struct HttpPeer {
  std::string address = {};           // IP address; empty for a Unix socket
  std::optional<unsigned> user = {};  // user id of the process at the other end of a Unix socket
};

struct HttpRequest {
  using Fields = std::vector<std::pair<std::string, std::string>>;

  std::string method;  // as received, for example "GET"
  std::string target;  // as received, for example "/metrics?x=1"
  bool keep_alive = false;
  Fields fields = {};                // names in lower case, in the order of arrival
  std::uint64_t announced_body = 0;  // bytes, as its Content-Length says
  std::string body = {};
  HttpPeer peer = {};

  // Returns the target without its query string.
  std::string path() const { return target.substr(0, target.find('?')); }
  // Returns the query string without its question mark.
  std::string query() const;
  // Returns the value of the field with this name in lower case; null if there is none or more than one.
  const std::string* field(std::string_view name) const;
};

// One text/event-stream answer. Every function may be called from any thread.
class EventStream {
 public:
  virtual ~EventStream() = default;
  // Sends the bytes of events; returns false once the stream is closed. A receiver that falls behind by
  // more than HttpOptions::max_behind is disconnected.
  virtual bool send(std::string events) = 0;
  virtual bool is_open() const = 0;
  // Ends the stream when everything before is sent.
  virtual void end() = 0;
};

struct HttpResponse {
  using Fields = std::vector<std::pair<std::string, std::string>>;

  int status = 200;
  std::string body = {};
  std::string content_type = "text/plain; charset=utf-8";
  Fields fields = {};  // further header fields
  // If not empty, the answer's body is this file as it was when it was opened, instead of `body`.
  std::filesystem::path file = {};
  // If set, the answer is a stream of events: called on the server's thread once the header is on its way.
  std::function<void(std::shared_ptr<EventStream>)> stream = {};
};

// Call exactly once, from any thread.
using HttpAnswer = std::function<void(HttpResponse)>;

// The answer of a service to the head of a request that it accepts.
struct HttpAdmission {
  std::size_t most_body = 0;  // bytes of the largest acceptable body
  // The sender has proved who it is: its connection does not give way to those of strangers.
  bool known = false;
};

// Answers the requests of a server, which calls it on its io_context's thread.
class HttpService {
 public:
  virtual ~HttpService() = default;
  // Called with a request's head before its body is read; may return the answer that refuses the request.
  virtual std::variant<HttpAdmission, HttpResponse> admit(const HttpRequest& head) = 0;
  virtual void serve(HttpRequest request, HttpAnswer answer) = 0;
};

// "Not Found" for 404.
const char* phrase_of(int status);

// Options of head_of(). Without a length, the end of the connection ends the body.
struct ResponseForm {
  bool keep_alive = false;
  std::optional<std::uint64_t> length = {};
};
// Returns the answer's status line and fields, which forbid caching and content sniffing.
std::string head_of(const HttpResponse& response, const ResponseForm& form);

// Decodes %xx and, in query strings, plus signs. Returns nothing for an incomplete escape.
std::optional<std::string> percent_decoded(std::string_view text, bool plus_is_space = false);

}  // namespace fedge::server
