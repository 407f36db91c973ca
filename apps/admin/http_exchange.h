// One request of the command-line tool to a coordinator's admin API, over a Unix socket or HTTPS. Blocks
// until the answer has arrived or the time is up.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/result.h"
#include "protocol/session/endpoint.h"

namespace fedge::apps {

// Where the API is over HTTPS.
struct HttpsPlace {
  protocol::Address address;
  // SHA-256 of the certificate's DER, in hexadecimal; empty: the system's certificate authorities decide.
  std::string fingerprint = {};
};
using HttpPlace = std::variant<std::filesystem::path, HttpsPlace>;  // of a Unix socket

struct HttpCall {
  std::string method;
  std::string target;
  std::string body = {};  // JSON
  std::vector<std::pair<std::string, std::string>> fields = {};
  std::chrono::seconds patience{60};  // for each step: connecting, sending, and each part of the answer
  // If set, it gets each part of the body of an answer with status 200 as it comes; false ends the request.
  std::function<bool(std::string)> on_part = {};
};

struct HttpResult {
  int status = 0;
  std::string body = {};
  std::string etag = {};
};

// kNotFound: no process listens on the Unix socket; kRefused: the server has another certificate, or the
// system does not trust it; kUnsupported: it is self-signed and not pinned; kUnavailable: it cannot be
// reached, or did not answer in time.
Result<HttpResult> send_request(const HttpPlace& place, const HttpCall& call);
// Connects and returns the fingerprint of the server's certificate, whatever it is.
Result<std::string> certificate_of(const protocol::Address& address);

}  // namespace fedge::apps
