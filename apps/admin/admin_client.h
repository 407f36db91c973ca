// AdminClient: the command-line tool's way to a coordinator. Over HTTPS to a remote one; through the Unix
// socket of a data directory while a coordinator runs there; and while none runs, with the same Api in this
// process. A command therefore never changes the files of a running coordinator itself.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "apps/admin/http_exchange.h"
#include "core/platform/files.h"
#include "core/result.h"
#include "server/api/api.h"

namespace fedge::apps {

using Json = nlohmann::ordered_json;

// A data directory on this machine, or the address of a remote coordinator.
struct AdminTarget {
  std::string data_directory;  // of --data-dir, or FEDGE_DATA_DIR
  std::string coordinator;     // of --coordinator, or FEDGE_COORDINATOR; if both are empty: the last login
};

// Completes what the options name. An option goes before both variables, of which only one may be set; a
// variable goes before the last login. The error says how to name a coordinator.
Result<AdminTarget> chosen_target(AdminTarget given);

struct AdminCall {
  std::string method;
  std::string path;  // behind /api/v1, with its query
  Json body = {};    // null: none
  std::string idempotency_key = {};
};

class AdminClient {
 public:
  // `anywhere`: the command may be the first to write to the data directory.
  static Result<AdminClient> open(const AdminTarget& target, bool anywhere = false);

  // Returns the answer's JSON. An error has the sentence and the code that the coordinator gave.
  Result<Json> call(const AdminCall& call) const;
  // Gets all pages of a list and passes each item to `visit`, until that returns false.
  Result<void> each(const std::string& path, const std::function<Result<bool>(const Json&)>& visit) const;
  // All items as an array.
  Result<Json> all(const std::string& path) const;

  // Opens GET /events with this query and passes each event to `visit`, until that returns false: its name,
  // and its data as JSON. The first one is named open: nothing that happens from then on is missed. After a
  // connection is lost, kUnavailable.
  Result<void> follow(
      const std::string& query,
      const std::function<Result<bool>(const std::string& name, const Json& data)>& visit) const;

  // Gets a file at this path of the API and writes it to `out`, first under a temporary name. Returns its
  // size in bytes.
  Result<std::uint64_t> download(const std::string& path, const std::filesystem::path& out) const;

  // Whether paths in requests mean files of this machine.
  bool is_local() const { return !remote_; }
  // Whether a coordinator answers.
  bool is_running() const { return offline_ == nullptr; }

 private:
  HttpCall http_call(const AdminCall& call) const;
  server::ApiResponse answer_here(const AdminCall& call) const;

  HttpPlace place_;
  std::string token_;
  bool remote_ = false;
  std::shared_ptr<DirectoryLock> lock_;  // with offline_: no coordinator starts meanwhile
  std::shared_ptr<server::Api> offline_;
};

// Escapes a text for a path or a query.
std::string url_escaped(const std::string& text);

}  // namespace fedge::apps
