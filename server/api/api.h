// Api answers the requests of the admin API, /api/v1: a table of routes (routes.cc), each with the role that
// it needs, over the stores of a data directory. It has no socket: ApiService serves it over HTTP while a
// coordinator runs, and the command-line tool calls it directly while none does, so both do the same. Changes
// are recorded in the audit log in the sender's name. openapi_document() describes all routes. One thread at
// a time; calls may wait for the disk.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "server/access/users.h"

namespace fedge::server {

class Live;
class Verifier;
class TokenVerifier;

struct ApiRequest {
  std::string method;
  std::string path;  // as in the target, for example "/api/v1/clients/7"
  std::string query = {};
  std::string body = {};
  Principal principal;
  std::string idempotency_key = {};
  std::string if_match = {};
  std::string if_none_match = {};
};

struct ApiResponse {
  int status = 200;
  std::string body = {};  // JSON; of errors, a problem of RFC 9457 with the fields detail and code
  std::string content_type = "application/json";
  std::vector<std::pair<std::string, std::string>> fields = {};  // further header fields
  std::filesystem::path file = {};  // if not empty, the body is this file instead
};

struct ApiParts {
  std::filesystem::path data_directory;
  std::string software;  // "fedge-coordinator 0.1.0"
  // Directories whose files remote users may name in run files; files elsewhere may be other teams'.
  std::vector<std::filesystem::path> directories = {};
  std::shared_ptr<Live> live = {};          // of the running coordinator; null: none runs
  std::shared_ptr<Verifier> verifier = {};  // replays runs; null: nobody does
  double keep_days = 0;                     // days for which runs that have ended are kept; 0: for ever
  // Accepts tokens of the organisation's identity provider over HTTPS; null: only access tokens count.
  std::shared_ptr<TokenVerifier> identity_provider = {};
};

inline constexpr const char* kApiRoot = "/api/v1";
inline constexpr std::size_t kMaxApiBody = 4 << 20;     // of a run's submission
inline constexpr std::size_t kMaxOtherBody = 64 << 10;  // of all other requests

// Returns the largest body of such a request, in bytes.
std::size_t most_body(const std::string& method, const std::string& path, const Principal& sender);

class Api {
 public:
  explicit Api(ApiParts parts);
  ~Api();
  Api(const Api&) = delete;
  Api& operator=(const Api&) = delete;

  ApiResponse answer(const ApiRequest& request);
  // Does what the coordinator does by itself from time to time: removes runs that ended long ago.
  Result<void> tidy_up(UnixSeconds now);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

// Returns the answer that reports this error.
ApiResponse problem(int status, const Error& error);

// One route, for tests and documents.
struct RouteInfo {
  std::string method;
  std::string path;  // "/api/v1/clients/{client}"
  std::string operation;
  std::string summary;
  Role role;
  bool everywhere;  // whether the role must be given in all projects
};
std::vector<RouteInfo> api_routes();
// The OpenAPI 3.1 document, as JSON.
std::string openapi_document();
// docs/reference/admin-api.md.
std::string api_reference();

}  // namespace fedge::server
