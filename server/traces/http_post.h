// HttpPost sends requests over plain HTTP/1.1, one at a time, each over a connection of its own. send()
// blocks the calling thread until the answer has arrived or the time is up. It reads at most 64 KiB of an
// answer.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/result.h"
#include "server/traces/trace_endpoint.h"

namespace fedge::server {

struct HttpPostOptions {
  std::chrono::milliseconds timeout{10'000};  // of the whole request
  // Returns the numeric addresses of a host name. It is called on a thread of its own, because looking up a
  // name cannot be interrupted. Null: ask the system.
  std::function<std::vector<std::string>(const std::string& host)> look_up = {};
};

class HttpPost {
 public:
  struct Answer {
    int status = 0;
    std::string reason;                          // "Service Unavailable"
    std::optional<std::chrono::seconds> wait{};  // Retry-After
    std::string body;
  };

  explicit HttpPost(TraceEndpoint endpoint, HttpPostOptions options = {});
  ~HttpPost();
  HttpPost(const HttpPost&) = delete;
  HttpPost& operator=(const HttpPost&) = delete;

  // Sends this JSON. kUnavailable: no whole answer came in time.
  Result<Answer> send(const std::string& body);
  // The present and all later calls of send() return by this time. From any thread.
  void end_by(std::chrono::steady_clock::time_point time);

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
};

// Parses the value of Retry-After, a number of seconds or a date; `now` is the time since 1970. Nothing if it
// is neither.
std::optional<std::chrono::seconds> parse_retry_after(const std::string& value, std::chrono::seconds now);

}  // namespace fedge::server
