// What the handlers of the admin API's routes share: the call, the stores, and the JSON of a request and an
// answer. Private to server/api/.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/result.h"
#include "server/access_control.h"
#include "server/api/api.h"
#include "server/audit_log.h"
#include "server/enrolment.h"
#include "server/live/client_activity.h"
#include "server/store/run_store.h"

namespace fedge::server {

using Json = nlohmann::ordered_json;

// The stores of a data directory, opened when first needed.
class ApiStores {
 public:
  explicit ApiStores(ApiParts parts)
      : parts_(std::move(parts)), enrolment_(parts_.data_directory), access_(parts_.data_directory) {}

  const ApiParts& parts() const { return parts_; }
  // Opens the runs. kNotFound: there were never any, and `create` is false.
  Result<RunStore*> runs(bool create = false);
  Enrolment& enrolment(const Actor& actor) {
    enrolment_.act_as(actor);
    return enrolment_;
  }
  AccessControl& access() { return access_; }
  // Returns what a client did lately; nothing if it has never connected.
  Result<std::optional<ClientActivity>> activity(ClientId client);
  AuditLog audit() const { return AuditLog(parts_.data_directory); }
  // Runs that remove_old_runs() could not remove.
  std::set<RunNumber>& stuck() { return stuck_; }

 private:
  ApiParts parts_;
  std::unique_ptr<RunStore> runs_;
  Enrolment enrolment_;
  AccessControl access_;
  std::set<RunNumber> stuck_;
  // Without a running coordinator: what fleet.db has.
  std::optional<std::map<ClientId, ClientActivity>> fleet_;
};

// An answer of a handler.
struct Reply {
  int status = 200;
  Json json;
  // The part of `json` that a PATCH can change; null: all of it. The rest may change at any time.
  Json settable = {};
  std::filesystem::path file = {};  // if not empty, it is the answer instead of `json`
};

// Parameters of all lists.
inline constexpr std::uint64_t kPageDefault = 100;
inline constexpr std::uint64_t kPageMost = 1000;

// A request on its route.
struct Call {
  const ApiRequest& request;
  ApiStores& stores;
  std::map<std::string, std::string> path;   // "client" -> "7"
  std::map<std::string, std::string> query;  // only parameters of the route
  Json body;                                 // an object, checked against the route's schema
  bool& forbidden;                           // set when the sender lacks a role

  const Actor& actor() const { return request.principal.actor; }
  // A number in the path or the query. kNotFound and kInvalid name the parameter.
  Result<std::uint64_t> number(const std::string& name) const;
  Result<std::uint64_t> query_number(const std::string& name, std::uint64_t fallback, std::uint64_t most,
                                     std::uint64_t least = 0) const;
  // Items of a page: the parameter limit of a list.
  Result<std::uint64_t> page_limit() const { return query_number("limit", kPageDefault, kPageMost, 1); }
  std::string query_text(const std::string& name) const;
  // Returns the run that the path names, for a sender with this role in its project.
  Result<RunRecord> find_run(RunStore& store, Role role) const;
  // Fields of the body.
  bool has(const char* field) const { return body.contains(field) && !body[field].is_null(); }
  std::string text(const char* field, const std::string& fallback = "") const;
  // Refuses a sender without the role in the project. An object in a project that the sender may not even
  // view does not exist for it.
  Result<void> require(Role role, const std::string& project, const Error& missing) const;
  // Refuses a sender without the role in the project that the request names.
  Result<void> require_project(Role role, const std::string& project) const;
  bool sees(const std::string& project) const { return request.principal.may(Role::kViewer, project); }
};

using Handler = Result<Reply> (*)(Call&);

struct Parameter {
  const char* name;
  const char* type;  // "integer" or "string"
  const char* doc;
};

// A field of a schema. `type` is "string", "integer", "number", "boolean", "object", "strings", or the name
// of another schema, with "[]" behind it for a list; a question mark behind it allows null.
struct FieldDoc {
  const char* name;
  const char* type;
  const char* doc;
  bool required = true;
};

struct Schema {
  const char* name;
  const char* doc;
  std::vector<FieldDoc> fields;
  bool open = false;  // further fields are allowed
};
const std::vector<Schema>& api_schemas();
std::vector<Schema> access_schemas();  // of these, those of users, tokens, projects, audit log and key
const Schema* find_schema(const std::string& name);
// Refuses a body that does not have the schema's form; the error names the field.
Result<void> check_body(const Json& body, const Schema& schema);

struct ApiRoute {
  const char* method;
  const char* path;  // behind kApiRoot
  const char* operation;
  const char* summary;
  Role role;
  bool everywhere = false;  // the role must be given in all projects; else the handler checks the project
  Handler handler;
  const char* body = "";    // schema of the request's body; empty: none
  const char* answer = "";  // schema of the answer; with "[]": a page of them
  std::vector<Parameter> query = {};
  int success = 200;
  bool stream = false;  // the answer is a stream of events
  bool file = false;    // the answer is a file
};
const std::vector<ApiRoute>& all_routes();

// A page of a list: the items, and where the next page begins; null: this is the last.
Reply page_of(Json items, std::optional<std::uint64_t> next);

// The handlers, by the file that defines them.
std::vector<ApiRoute> client_routes();
std::vector<ApiRoute> join_token_routes();
std::vector<ApiRoute> run_routes();
std::vector<ApiRoute> model_routes();
std::vector<ApiRoute> verification_routes();
std::vector<ApiRoute> key_routes();
std::vector<ApiRoute> disagreement_routes();
std::vector<ApiRoute> user_routes();
std::vector<ApiRoute> audit_routes();
std::vector<ApiRoute> live_routes();

// Adds what the client did lately in this project, its present one, to its JSON.
Result<void> add_activity(Call& call, ClientId client, const std::string& project, Json& json);
// What the run waits for, or null.
Json waiting_of(const Call& call, RunNumber run);

// Removes the runs that ended more than ApiParts::keep_days ago.
Result<void> remove_old_runs(ApiStores& stores, UnixSeconds now);

// A time, or null for 0.
Json time_or_null(UnixSeconds time);
Json number_or_null(const std::optional<ClientId>& client);

}  // namespace fedge::server
