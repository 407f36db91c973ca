// Routes of users, access tokens and projects, and of the sender itself.
#include <algorithm>
#include <chrono>
#include <utility>

#include "core/text.h"
#include "server/api/detail/call.h"

namespace fedge::server {
namespace {

constexpr double kMostDays = 3650;
constexpr double kDefaultDays = 90;

Json grants_json(const std::vector<Grant>& grants) {
  Json json = Json::array();
  for (const Grant& grant : grants) json.push_back(grant.project + "=" + name_of(grant.role));
  return json;
}

Result<std::vector<Grant>> grants_of(const Call& call) {
  std::string text;
  for (const Json& grant : call.body["grants"]) {
    const auto one = grant.get<std::string>();
    if (one.empty() || one.find(',') != std::string::npos)
      return invalid("a grant is PROJECT=ROLE with the role viewer, submitter, operator or admin, not '" +
                     clean_text(one, 80) + "'");
    text += (text.empty() ? "" : ",") + one;
  }
  return parse_grants(text);
}

Json user_json(const UserRecord& user) {
  Json json;
  json["name"] = user.name;
  json["grants"] = grants_json(user.grants);
  json["created"] = calendar_text(user.created);
  json["removed"] = user.removed;
  return json;
}

Json access_json(const AccessTokenRecord& token) {
  Json json;
  json["token"] = token.id;
  json["user"] = token.user;
  json["state"] = state_of(token, calendar_now());
  json["role"] = token.role ? Json(name_of(*token.role)) : Json();
  json["project"] = token.project.empty() ? Json() : Json(token.project);
  json["note"] = token.note;
  json["created"] = calendar_text(token.created);
  json["expires"] = calendar_text(token.expires);
  return json;
}

Result<Reply> show_identity(Call& call) {
  Json json;
  json["name"] = call.actor().name;
  json["grants"] = grants_json(call.request.principal.grants);
  json["software"] = call.stores.parts().software;
  return Reply{200, std::move(json)};
}

Result<Reply> list_users(Call& call) {
  const std::string after = call.query_text("after");
  FEDGE_TRY(limit, call.page_limit());
  FEDGE_TRY(book, call.stores.access().read());
  Json json;
  json["items"] = Json::array();
  json["next"] = nullptr;
  for (const UserRecord& user : book.users) {
    if (user.name <= after) continue;
    if (json["items"].size() == limit) {
      json["next"] = json["items"].back()["name"];
      break;
    }
    json["items"].push_back(user_json(user));
  }
  return Reply{200, std::move(json)};
}

Result<Reply> user_reply(Call& call, const std::string& name, int status = 200) {
  FEDGE_TRY(book, call.stores.access().read());
  const auto user = std::ranges::find(book.users, name, &UserRecord::name);
  if (user == book.users.end())
    return Error{ErrorCode::kNotFound, "there is no user '" + clean_text(name, 80) + "'; see: fedge user ls"};
  return Reply{status, user_json(*user)};
}

Result<Reply> show_user(Call& call) { return user_reply(call, call.path.at("user")); }

Result<Reply> add_user(Call& call) {
  FEDGE_TRY(grants, grants_of(call));
  const std::string name = call.text("name");
  FEDGE_TRY_VOID(call.stores.access().add_user(call.actor(), name, grants, calendar_now()));
  return user_reply(call, name, 201);
}

Result<Reply> grant_roles(Call& call) {
  FEDGE_TRY(grants, grants_of(call));
  FEDGE_TRY_VOID(call.stores.access().set_grants(call.actor(), call.path.at("user"), grants));
  return user_reply(call, call.path.at("user"));
}

Result<Reply> remove_user(Call& call) {
  FEDGE_TRY_VOID(call.stores.access().remove_user(call.actor(), call.path.at("user")));
  return user_reply(call, call.path.at("user"));
}

Result<Reply> list_access(Call& call) {
  FEDGE_TRY(after, call.query_number("after", 0, UINT32_MAX));
  FEDGE_TRY(limit, call.page_limit());
  FEDGE_TRY(book, call.stores.access().read());
  Json items = Json::array();
  std::optional<std::uint64_t> last;
  for (const AccessTokenRecord& token : book.tokens) {
    if (token.id <= after) continue;
    if (items.size() == limit) return page_of(std::move(items), last);
    last = token.id;
    items.push_back(access_json(token));
  }
  return page_of(std::move(items), std::nullopt);
}

Result<Reply> create_access(Call& call) {
  const double days = call.has("days") ? call.body["days"].get<double>() : kDefaultDays;
  if (!(days > 0 && days <= kMostDays)) return invalid("the field days must be above 0 and at most 3650");
  AccessTokenOrder order{.user = call.path.at("user"),
                         .now = calendar_now(),
                         .lifetime = std::chrono::seconds(static_cast<std::int64_t>(days * 86'400)),
                         .project = call.text("project"),
                         .note = call.text("note")};
  if (call.has("role")) {
    order.role = parse_role(call.text("role"));
    if (!order.role) return invalid("the field role must be viewer, submitter, operator or admin");
  }
  FEDGE_TRY(created, call.stores.access().create_token(call.actor(), order));
  Json json;
  json["token"] = created.id;
  json["secret"] = created.secret;
  return Reply{201, std::move(json)};
}

Result<Reply> revoke_access(Call& call) {
  FEDGE_TRY(number, call.number("token"));
  const auto id = static_cast<std::uint32_t>(std::min<std::uint64_t>(number, UINT32_MAX));
  FEDGE_TRY_VOID(call.stores.access().revoke_token(call.actor(), id));
  FEDGE_TRY(book, call.stores.access().read());
  const auto token = std::ranges::find(book.tokens, id, &AccessTokenRecord::id);
  return Reply{200, token == book.tokens.end() ? Json() : access_json(*token)};
}

Json project_json(const ProjectRecord& project) {
  Json json;
  json["name"] = project.name;
  json["created"] = time_or_null(project.created);
  return json;
}

Result<Reply> list_projects(Call& call) {
  const std::string after = call.query_text("after");
  FEDGE_TRY(limit, call.page_limit());
  FEDGE_TRY(book, call.stores.access().read());
  Json json;
  json["items"] = Json::array();
  json["next"] = nullptr;
  for (const ProjectRecord& project : book.projects) {
    if (project.name <= after || !call.sees(project.name)) continue;
    if (json["items"].size() == limit) {
      json["next"] = json["items"].back()["name"];
      break;
    }
    json["items"].push_back(project_json(project));
  }
  return Reply{200, std::move(json)};
}

Result<Reply> add_project(Call& call) {
  const ProjectRecord project{call.text("name"), calendar_now()};
  FEDGE_TRY_VOID(call.stores.access().add_project(call.actor(), project.name, project.created));
  return Reply{201, project_json(project)};
}

}  // namespace

std::vector<ApiRoute> user_routes() {
  const std::vector<Parameter> by_number = {
      {"after", "integer", "Only tokens with a higher number"},
      {"limit", "integer", "Most tokens in the answer, at most 1000; default: 100"}};
  return {{.method = "GET",
           .path = "/identity",
           .operation = "showIdentity",
           .summary = "Show who sent the request, and its roles",
           .role = Role::kViewer,
           .handler = show_identity,
           .answer = "Identity"},
          {.method = "GET",
           .path = "/users",
           .operation = "listUsers",
           .summary = "List users, by name",
           .role = Role::kAdmin,
           .everywhere = true,
           .handler = list_users,
           .answer = "User[]",
           .query = {{"after", "string", "Only users with a later name"},
                     {"limit", "integer", "Most users in the answer, at most 1000; default: 100"}}},
          {.method = "POST",
           .path = "/users",
           .operation = "addUser",
           .summary = "Add a user",
           .role = Role::kAdmin,
           .everywhere = true,
           .handler = add_user,
           .body = "NewUser",
           .answer = "User",
           .success = 201},
          {.method = "GET",
           .path = "/users/{user}",
           .operation = "showUser",
           .summary = "Show one user",
           .role = Role::kAdmin,
           .everywhere = true,
           .handler = show_user,
           .answer = "User"},
          {.method = "PUT",
           .path = "/users/{user}/grants",
           .operation = "grantRoles",
           .summary = "Replace the roles of a user",
           .role = Role::kAdmin,
           .everywhere = true,
           .handler = grant_roles,
           .body = "Grants",
           .answer = "User"},
          {.method = "DELETE",
           .path = "/users/{user}",
           .operation = "removeUser",
           .summary = "Remove a user for good; its access tokens are void",
           .role = Role::kAdmin,
           .everywhere = true,
           .handler = remove_user,
           .answer = "User"},
          {.method = "POST",
           .path = "/users/{user}/tokens",
           .operation = "createAccessToken",
           .summary = "Create an access token of a user",
           .role = Role::kAdmin,
           .everywhere = true,
           .handler = create_access,
           .body = "NewAccessToken",
           .answer = "CreatedAccessToken",
           .success = 201},
          {.method = "GET",
           .path = "/access-tokens",
           .operation = "listAccessTokens",
           .summary = "List access tokens without their secrets, by number",
           .role = Role::kAdmin,
           .everywhere = true,
           .handler = list_access,
           .answer = "AccessToken[]",
           .query = by_number},
          {.method = "POST",
           .path = "/access-tokens/{token}/revoke",
           .operation = "revokeAccessToken",
           .summary = "Revoke an access token",
           .role = Role::kAdmin,
           .everywhere = true,
           .handler = revoke_access,
           .answer = "AccessToken"},
          {.method = "GET",
           .path = "/projects",
           .operation = "listProjects",
           .summary = "List the projects that the sender may see",
           .role = Role::kViewer,
           .handler = list_projects,
           .answer = "Project[]",
           .query = {{"after", "string", "Only projects with a later name"},
                     {"limit", "integer", "Most projects in the answer, at most 1000; default: 100"}}},
          {.method = "POST",
           .path = "/projects",
           .operation = "addProject",
           .summary = "Add a project",
           .role = Role::kAdmin,
           .everywhere = true,
           .handler = add_project,
           .body = "NewProject",
           .answer = "Project",
           .success = 201}};
}

}  // namespace fedge::server
