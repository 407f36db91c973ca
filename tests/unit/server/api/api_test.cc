// The admin API without HTTP: who may do what, projects that do not see each other, and the form of requests
// and answers.
#include "server/api/api.h"

#include <doctest/doctest.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "core/platform/files.h"
#include "protocol/join_token.h"
#include "server/access_control.h"
#include "server/data_directory.h"
#include "server/enrolment.h"
#include "server/store/sqlite_store.h"
#include "tests/support/tiny_dataset.h"

using namespace fedge;
using namespace fedge::server;

namespace {

using Json = nlohmann::json;

PublicKey api_key(std::uint8_t byte) {
  PublicKey key;
  key.bytes.fill(byte);
  return key;
}

Principal who(const std::string& name, const std::string& grants) {
  return {{"user " + name, "192.0.2.1"}, *parse_grants(grants)};
}

// A data directory with two projects, each with a client, a token and a run.
struct Hospital {
  test::TemporaryDirectory directory;
  Api api;
  Principal admin = who("root", "*=admin");

  explicit Hospital(std::vector<std::filesystem::path> directories = {})
      : api({directory.path(), "fedge-coordinator 9.9", std::move(directories)}) {
    REQUIRE(open_coordinator_key(directory.path()));
    REQUIRE(write_file_atomic(directory.path() / "address", std::string("127.0.0.1:7433\n")));
    for (const char* project : {"cardiology", "oncology"})
      REQUIRE(call(admin, "POST", "/projects", Json{{"name", project}}).status == 201);
    Enrolment enrolment(directory.path());
    std::uint8_t number = 0;
    for (const char* project : {"cardiology", "oncology"}) {
      const auto tokens = enrolment.create_tokens(
          {.now = calendar_now(), .lifetime = std::chrono::hours(1), .description = {.project = project}});
      REQUIRE(tokens);
      REQUIRE(enrolment.redeem({tokens->front().secret, api_key(++number), calendar_now()}));
      const auto store = open_sqlite_store(run_store_path(directory.path()));
      RunRecord run = new_run(project, "[run]\nname = \"" + std::string(project) + "\"\n");
      run.project = project;
      REQUIRE((*store)->submit(run));
    }
  }

  ApiResponse call(const Principal& sender, const std::string& method, const std::string& target,
                   const Json& body = {}, const std::string& key = "") {
    const std::size_t mark = std::min(target.find('?'), target.size());
    return api.answer({.method = method,
                       .path = kApiRoot + target.substr(0, mark),
                       .query = target.substr(std::min(mark + 1, target.size())),
                       .body = body.is_null() ? "" : body.dump(),
                       .principal = sender,
                       .idempotency_key = key});
  }
  Json get(const Principal& sender, const std::string& target) {
    const auto response = call(sender, "GET", target);
    CHECK_MESSAGE(response.status == 200, target << ": " << response.body);
    return Json::parse(response.body);
  }
  std::string detail(const ApiResponse& response) { return Json::parse(response.body)["detail"]; }
  std::vector<std::string> audit() {
    std::vector<std::string> lines;
    (void)AuditLog(directory.path()).verify("", [&](const AuditEntry& entry) {
      lines.push_back(entry.event.actor + " " + entry.event.action + " " + entry.event.subject);
    });
    return lines;
  }
};

// The target with numbers in place of its parameters, and a body that the route accepts.
std::string filled(std::string path) {
  path = path.substr(std::string(kApiRoot).size());
  for (const auto& [name, value] : std::map<std::string, std::string>{
           {"{client}", "0"}, {"{token}", "1"}, {"{run}", "1"}, {"{user}", "alice"}, {"{disagreement}", "1"}})
    if (const std::size_t at = path.find(name); at != std::string::npos) path.replace(at, name.size(), value);
  return path;
}

Json body_for(const std::string& operation) {
  const std::map<std::string, Json> bodies = {
      {"addClient", {{"key", to_hex(api_key(9))}, {"project", "cardiology"}}},
      {"describeClient", {{"name", "x"}}},
      {"createJoinTokens", {{"project", "cardiology"}}},
      {"submitRun", {{"document", "[run]\nrounds = 0\n"}, {"project", "cardiology"}}},
      {"addDisagreement", {{"kind", "full"}, {"clients", {"0"}}}},
      {"addUser", {{"name", "carol"}, {"grants", Json::array()}}},
      {"grantRoles", {{"grants", Json::array()}}},
      {"createAccessToken", Json::object()},
      {"addProject", {{"name", "new"}}}};
  const auto found = bodies.find(operation);
  return found == bodies.end() ? Json() : found->second;
}

}  // namespace

TEST_CASE("admin api: every route does what it does for its role, and nothing for a lower one") {
  // A role counts in its project alone: being an administrator elsewhere does not help.
  enum class Given { kInProject, kAndMoreElsewhere, kEverywhere };
  for (const RouteInfo& route : api_routes())
    for (const Role role : {Role::kViewer, Role::kSubmitter, Role::kOperator, Role::kAdmin})
      for (const Given given : {Given::kInProject, Given::kAndMoreElsewhere, Given::kEverywhere}) {
        Hospital hospital;
        CAPTURE(route.operation);
        CAPTURE(name_of(role));
        CAPTURE(static_cast<int>(given));
        REQUIRE(
            hospital
                .call(hospital.admin, "POST", "/users", Json{{"name", "alice"}, {"grants", Json::array()}})
                .status == 201);
        REQUIRE(hospital.call(hospital.admin, "POST", "/users/alice/tokens", Json::object()).status == 201);
        const auto before = hospital.audit();
        const std::string more = given == Given::kAndMoreElsewhere ? ",oncology=admin" : "";
        const Principal sender = who("sender", std::string(given == Given::kEverywhere ? "*" : "cardiology") +
                                                   "=" + name_of(role) + more);
        const auto response =
            hospital.call(sender, route.method, filled(route.path), body_for(route.operation));
        // A list shows what the sender may see, here that of the other project.
        const bool list = route.operation.starts_with("list") && route.path.find('{') == std::string::npos;
        const bool enough = role >= route.role || (list && given == Given::kAndMoreElsewhere);
        const bool allowed = enough && (given == Given::kEverywhere || !route.everywhere);
        CHECK_MESSAGE((response.status == 403) == !allowed, response.status << " " << response.body);
        if (!allowed) CHECK(hospital.audit() == before);
        if (!allowed) CHECK(hospital.detail(response).find("user sender needs the role ") == 0);
        CHECK((list && allowed && !route.everywhere && given != Given::kEverywhere && role < route.role
                   ? response.body.find("cardiology") == std::string::npos
                   : true));
      }
}

TEST_CASE("admin api: a project's objects do not exist for a user of another project") {
  Hospital hospital;
  const Principal team = who("bob", "oncology=operator");
  const auto before = hospital.audit();
  CHECK(hospital.get(team, "/clients")["items"].size() == 1);
  CHECK(hospital.get(team, "/clients")["items"][0]["client"] == 1);
  CHECK(hospital.get(team, "/runs")["items"].size() == 1);
  CHECK(hospital.get(team, "/runs")["items"][0]["name"] == "oncology");
  CHECK(hospital.get(team, "/join-tokens")["items"].size() == 1);
  CHECK(hospital.get(team, "/projects")["items"].size() == 1);
  for (const RouteInfo& route : api_routes()) {
    if (route.path.find("{client}") == std::string::npos && route.path.find("{run}") == std::string::npos &&
        route.path.find("{token}") == std::string::npos)
      continue;
    if (route.everywhere) continue;
    CAPTURE(route.operation);
    const auto response = hospital.call(team, route.method, filled(route.path), body_for(route.operation));
    CHECK_MESSAGE(response.status == 404, response.status << " " << response.body);
    CHECK(response.body.find("cardiology") == std::string::npos);
  }
  for (const auto& [path, body] :
       std::map<std::string, Json>{{"/clients", {{"key", to_hex(api_key(7))}, {"project", "cardiology"}}},
                                   {"/join-tokens", {{"project", "cardiology"}}},
                                   {"/runs", {{"document", ""}, {"project", "cardiology"}}}})
    CHECK(hospital.call(team, "POST", path, body).status == 403);
  // Nor can a client be given away.
  CHECK(hospital.call(team, "PATCH", "/clients/1", Json{{"project", "cardiology"}}).status == 403);
  CHECK(hospital.get(hospital.admin, "/clients/1")["project"] == "oncology");
  CHECK(hospital.audit() == before);
}

TEST_CASE("admin api: a change is recorded with the name and address of who made it") {
  Hospital hospital;
  const Principal team = who("bob", "cardiology=operator");
  REQUIRE(
      hospital.call(team, "PATCH", "/clients/0", Json{{"name", "laptop"}, {"labels", {"b", "a"}}}).status ==
      200);
  REQUIRE(hospital.call(team, "POST", "/clients/0/revoke").status == 200);
  REQUIRE(hospital.call(team, "POST", "/runs/1/stop", Json{{"reason", "enough"}}).status == 200);
  const auto lines = hospital.audit();
  REQUIRE(lines.size() >= 3);
  CHECK(std::vector(lines.end() - 3, lines.end()) ==
        std::vector<std::string>{"user bob client.described client 0", "user bob client.revoked client 0",
                                 "user bob run.stopped run cardiology"});
  std::string from;
  REQUIRE(AuditLog(hospital.directory.path()).verify("", [&](const AuditEntry& entry) {
    from = entry.event.details.back().first + "=" + entry.event.details.back().second;
  }));
  CHECK(from == "from=192.0.2.1");
}

TEST_CASE("admin api: lists come in pages that together are the whole list") {
  Hospital hospital;
  REQUIRE(hospital.call(hospital.admin, "POST", "/join-tokens", Json{{"count", 250}}).status == 201);
  for (int i = 0; i < 12; ++i)
    REQUIRE(hospital
                .call(hospital.admin, "POST", "/users",
                      Json{{"name", "user" + std::to_string(i)}, {"grants", Json::array()}})
                .status == 201);
  for (const std::string list : {"/clients", "/join-tokens", "/runs", "/audit", "/projects", "/users"})
    for (const std::string limit : {"1", "7", "100", "1000"}) {
      CAPTURE(list);
      CAPTURE(limit);
      std::set<std::string> seen;
      std::string after;
      std::size_t items = 0;
      for (std::size_t pages = 0; pages < 1000; ++pages) {
        const Json page = hospital.get(hospital.admin, list + "?limit=" + limit + after);
        CHECK(page["items"].size() <= std::stoul(limit));
        for (const Json& item : page["items"]) seen.insert(item.dump());
        items += page["items"].size();
        if (page["next"].is_null()) break;
        CHECK(page["items"].size() == std::stoul(limit));
        after =
            "&after=" + (page["next"].is_string() ? page["next"].get<std::string>() : page["next"].dump());
      }
      CHECK(seen.size() == items);
      CHECK(items == hospital.get(hospital.admin, list + "?limit=1000")["items"].size());
      CHECK(items >= 2);
    }
  CHECK(hospital.get(hospital.admin, "/clients?state=invited&limit=1000")["items"].size() == 250);
  // A page without items would have no end.
  for (const std::string list :
       {"/clients", "/join-tokens", "/runs", "/audit", "/projects", "/users", "/access-tokens"})
    CHECK_MESSAGE(hospital.call(hospital.admin, "GET", list + "?limit=0").status == 400, list);
}

TEST_CASE("admin api: wrong parameters and bodies are refused with what would be right") {
  Hospital hospital;
  const auto why = [&](const std::string& method, const std::string& target, const Json& body = {}) {
    const auto response = hospital.call(hospital.admin, method, target, body);
    return std::to_string(response.status) + ": " + hospital.detail(response);
  };
  CHECK(why("GET", "/clients?limit=1001") ==
        "400: the parameter limit must be an integer from 1 to 1000, not '1001'");
  CHECK(why("GET", "/clients?limit=-1") ==
        "400: the parameter limit must be an integer from 1 to 1000, not '-1'");
  CHECK(why("GET", "/clients?limit=1&limit=2") == "400: the request has the parameter 'limit' twice");
  CHECK(why("GET", "/clients?sort=key") ==
        "400: the request has an unknown parameter 'sort'; known parameters: after limit project state label "
        "online");
  CHECK(why("GET", "/clients?label=%4") == "400: the query of the request has an incomplete escape");
  CHECK(why("GET", "/clients/x") == "404: there is no client 'x'");
  CHECK(why("GET", "/clients/99999999999999999999") == "404: there is no client '99999999999999999999'");
  CHECK(why("GET", "/clients/77") == "404: there is no client 77; list clients with: fedge client ls");
  CHECK(why("GET", "/nothing") == "404: there is no such path; /api/v1/openapi.json lists all paths");
  CHECK(why("PUT", "/clients") == "405: this path accepts only GET, POST");
  CHECK(why("POST", "/clients", Json::array()) == "400: the body of the request must be a JSON object");
  CHECK(why("POST", "/clients", Json{{"kex", 1}}) ==
        "400: the body of the request has an unknown field 'kex'; known fields: key, name, labels, project");
  CHECK(why("POST", "/clients", Json::object()) == "400: the body of the request lacks the field key");
  CHECK(why("POST", "/clients", Json{{"key", 5}}) == "400: the field key of the request must be a string");
  CHECK(why("PATCH", "/clients/0", Json{{"labels", {1}}}) ==
        "400: the field labels of the request must be a list of strings");
  CHECK(why("PATCH", "/clients/0", Json{{"labels", {"<script>"}}}) ==
        "400: a label must have 1 to 64 of the characters A-Z, a-z, 0-9 and . _ : = -, not '<script>'");
  CHECK(why("PATCH", "/clients/0", Json{{"name", "a\nb"}}) ==
        "400: a client's name must be printable text of at most 128 bytes");
  CHECK(why("PATCH", "/clients/0", Json{{"project", "none"}}) ==
        "404: there is no project 'none'; see: fedge project ls");
  CHECK(why("POST", "/join-tokens", Json{{"count", 0}}) == "400: the field count must be from 1 to 100000");
  CHECK(why("POST", "/join-tokens", Json{{"hours", 1e9}}) ==
        "400: the field hours must be from 0.001 to 87600");
  CHECK(why("GET", "/audit/verification?expect=12") ==
        "400: the parameter expect must be 64 lower-case hexadecimal digits");
  CHECK(why("POST", "/runs/1/approve") == "404: there is no such path; /api/v1/openapi.json lists all paths");
  ApiRequest deep{.method = "POST", .path = "/api/v1/clients", .principal = hospital.admin};
  deep.body = std::string(100'000, '[');
  CHECK(hospital.api.answer(deep).status == 400);
  deep.body = "{\"key\":";
  CHECK(hospital.detail(hospital.api.answer(deep)) == "the body of the request is not JSON");
}

TEST_CASE("admin api: SQL, path and control characters in fields are data") {
  Hospital hospital;
  for (const std::string text :
       {"'; DROP TABLE clients; --", "../../node.key", "%2e%2e%2fnode.key", "a\"b"}) {
    CAPTURE(text);
    REQUIRE(hospital.call(hospital.admin, "PATCH", "/clients/0", Json{{"name", text}}).status == 200);
    CHECK(hospital.get(hospital.admin, "/clients/0")["name"] == text);
    CHECK(hospital.call(hospital.admin, "GET", "/users/" + std::string("%27%3B%20DROP")).status == 404);
  }
  CHECK(hospital.get(hospital.admin, "/clients")["items"].size() == 2);
  CHECK(hospital.call(hospital.admin, "GET", "/users/..%2f..%2fnode.key").status == 404);
}

TEST_CASE("admin api: a tag says whether something has changed, and guards a change") {
  Hospital hospital;
  ApiRequest read{.method = "GET", .path = "/api/v1/clients/0", .principal = hospital.admin};
  const auto first = hospital.api.answer(read);
  REQUIRE(first.fields.size() == 1);
  CHECK(first.fields[0].first == "ETag");
  read.if_none_match = first.fields[0].second;
  CHECK(hospital.api.answer(read).status == 304);
  CHECK(hospital.api.answer(read).body.empty());
  ApiRequest change{.method = "PATCH",
                    .path = "/api/v1/clients/0",
                    .body = R"({"name":"one"})",
                    .principal = hospital.admin,
                    .if_match = first.fields[0].second};
  CHECK(hospital.api.answer(change).status == 200);
  change.body = R"({"name":"two"})";
  const auto late = hospital.api.answer(change);
  CHECK(late.status == 412);
  CHECK(hospital.detail(late) == "it has changed since it was read; read it again");
  CHECK(hospital.get(hospital.admin, "/clients/0")["name"] == "one");
  CHECK(hospital.api.answer(read).status == 200);
}

TEST_CASE("admin api: a submission that is repeated with its key is one run") {
  const test::TemporaryDirectory data;
  test::write_tiny_dataset(data);
  Hospital hospital({data.path()});
  const std::string document =
      "[run]\nname = \"tiny\"\nrounds = 2\n[data]\ndataset = \"fashion-mnist\"\n" +
      std::string("directory = \"") + data.path().string() +
      "\"\npartition = { kind = \"iid\", clients = 2 }\n[model]\nkind = \"softmax\"\n";
  const Json body{{"document", document}, {"project", "oncology"}, {"assignments", {"run.rounds=3"}}};
  const Principal team = who("bob", "oncology=submitter");
  const auto first = hospital.call(team, "POST", "/runs", body, "monday");
  REQUIRE_MESSAGE(first.status == 201, first.body);
  const auto again = hospital.call(team, "POST", "/runs", body, "monday");
  CHECK(again.status == 201);
  const Json run = Json::parse(first.body)["run"];
  CHECK(Json::parse(again.body)["run"]["run"] == run["run"]);
  CHECK(run["project"] == "oncology");
  CHECK(run["submitter"] == "user bob");
  CHECK(hospital.get(team, "/runs/" + run["run"].dump())["document"].get<std::string>().find("rounds = 3") !=
        std::string::npos);
  CHECK(Json::parse(hospital.call(team, "POST", "/runs", body, "tuesday").body)["run"]["run"] != run["run"]);
  CHECK(Json::parse(hospital.call(who("eve", "oncology=submitter"), "POST", "/runs", body, "monday")
                        .body)["run"]["run"] != run["run"]);
  Json other = body;
  other["assignments"] = Json::array();
  CHECK(hospital.call(team, "POST", "/runs", other, "monday").status == 409);
  const auto lines = hospital.audit();
  CHECK(std::count(lines.begin(), lines.end(), "user bob run.submitted run tiny") == 2);
}

TEST_CASE("admin api: a remote user cannot read the coordinator's files by naming them in a run file") {
  const test::TemporaryDirectory allowed;
  const test::TemporaryDirectory secret;
  REQUIRE(write_file_atomic(secret.path() / "model.safetensors", std::string("not for everybody")));
  REQUIRE(write_file_atomic(allowed.path() / "model.safetensors", std::string("broken")));
  std::filesystem::create_symlink(secret.path() / "model.safetensors", allowed.path() / "link.safetensors");
  Hospital hospital;
  Api api({hospital.directory.path(), "fedge-coordinator 9.9", {allowed.path(), "/nonexistent"}});
  const auto why = [&](const Principal& sender, const std::string& key, const std::filesystem::path& path) {
    const std::string document = "[run]\nrounds = 1\n";
    const Json body{{"document", document}, {"assignments", {key + "=\"" + path.string() + "\""}}};
    const auto response =
        api.answer({.method = "POST", .path = "/api/v1/runs", .body = body.dump(), .principal = sender});
    return hospital.detail(response);
  };
  const Principal remote = who("bob", "*=admin");
  const std::string refused = "is in none of the directories";
  for (const char* key : {"model.base", "data.directory", "data.tokenizer.file"}) {
    CHECK(why(remote, key, secret.path() / "model.safetensors").find(refused) != std::string::npos);
    CHECK(why(remote, key, secret.path() / "missing").find(refused) != std::string::npos);
    CHECK(why(remote, key, allowed.path() / "link.safetensors").find(refused) != std::string::npos);
    CHECK(why(remote, key, allowed.path() / ".." / secret.path().filename() / "model.safetensors")
              .find(refused) != std::string::npos);
    CHECK(why(remote, key, allowed.path().string() + "-beside").find(refused) != std::string::npos);
    CHECK(why(remote, key, "model.safetensors").find(refused) != std::string::npos);
    CHECK(why(remote, key, allowed.path() / "model.safetensors").find(refused) == std::string::npos);
    // On the coordinator's machine, its user can read them anyway.
    CHECK(why(local_administrator(0), key, secret.path() / "model.safetensors").find(refused) ==
          std::string::npos);
  }
}

TEST_CASE("admin api: a client's revocation leaves the token of another project open") {
  Hospital hospital;
  const auto made =
      hospital.call(hospital.admin, "POST", "/join-tokens", Json{{"uses", 2}, {"project", "oncology"}});
  const std::string join = Json::parse(made.body)["items"][0]["join"];
  const auto token = protocol::parse_join_token(join);
  REQUIRE(token);
  REQUIRE(Enrolment(hospital.directory.path()).redeem({token->secret, api_key(8), calendar_now()}));
  const Json clients = hospital.get(hospital.admin, "/clients")["items"];
  const std::string moved = "/clients/" + clients.back()["client"].dump();
  REQUIRE(hospital.call(hospital.admin, "PATCH", moved, Json{{"project", "cardiology"}}).status == 200);
  const auto response = hospital.call(who("bob", "cardiology=operator"), "POST", moved + "/revoke");
  REQUIRE_MESSAGE(response.status == 200, response.body);
  CHECK(Json::parse(response.body)["token_revoked"].is_null());
  CHECK(hospital.get(hospital.admin, "/join-tokens")["items"].back()["state"] == "open");
}

TEST_CASE("admin api: an error in a run file names its file and line, and nothing is submitted") {
  Hospital hospital;
  const auto response = hospital.call(hospital.admin, "POST", "/runs",
                                      Json{{"document", "[run]\nrounds = -1\n"}, {"file", "a/wrong.toml"}});
  CHECK(response.status == 400);
  CHECK(hospital.detail(response).find("a/wrong.toml:2: run.rounds: -1 is out of range") == 0);
  CHECK(hospital.get(hospital.admin, "/runs")["items"].size() == 2);
  const auto missing =
      hospital.call(hospital.admin, "POST", "/runs", Json{{"document", ""}, {"project", "none"}});
  CHECK(missing.status == 404);
}

TEST_CASE("admin api: every route has an operation of its own in the document, with schemas that exist") {
  const Json document = Json::parse(openapi_document());
  std::set<std::string> operations;
  for (const RouteInfo& route : api_routes()) {
    const std::string path = route.path.substr(std::string(kApiRoot).size());
    std::string method = route.method;
    for (char& c : method) c = static_cast<char>(std::tolower(c));
    REQUIRE_MESSAGE(document["paths"][path].contains(method), path << " " << method);
    CHECK(document["paths"][path][method]["operationId"] == route.operation);
    CHECK(document["paths"][path][method]["x-role"] == name_of(route.role));
    CHECK(operations.insert(route.operation).second);
  }
  const std::function<void(const Json&)> check = [&](const Json& json) {
    if (json.is_object() && json.contains("$ref")) {
      const std::string reference = json["$ref"];
      REQUIRE(reference.starts_with("#/components/schemas/"));
      CHECK_MESSAGE(document["components"]["schemas"].contains(reference.substr(21)), reference);
    }
    if (json.is_structured())
      for (const Json& part : json) check(part);
  };
  check(document);
}
