// Routes of clients.
#include <algorithm>
#include <utility>

#include "core/text.h"
#include "server/api/detail/call.h"
#include "server/live/live.h"

namespace fedge::server {
namespace {

Error no_such_client(ClientId client) {
  return {ErrorCode::kNotFound,
          "there is no client " + std::to_string(client.value()) + "; list clients with: fedge client ls"};
}

Json described(std::int64_t number, const ClientDescription& description, const std::string& state) {
  Json json;
  json["client"] = number;
  json["name"] = description.name;
  json["labels"] = description.labels;
  json["project"] = description.project;
  json["state"] = state;
  return json;
}

Result<Json> client_json(Call& call, const ClientRecord& client) {
  Json json = described(client.client.value(), client.description, to_string(client.state));
  json["enrolled"] = calendar_text(client.enrolled);
  json["token"] = client.token;
  json["key"] = to_hex(client.key);
  FEDGE_TRY_VOID(add_activity(call, client.client, client.description.project, json));
  return json;
}

std::string state_of(const TokenRecord& invitation) {
  const std::string state = state_of(invitation, calendar_now());
  return state == "open" ? "invited" : state;
}

// A client that an unused token for one use has invited.
Result<Json> invited_json(Call& call, const TokenRecord& token) {
  Json json = described(token.client->value(), token.description, state_of(token));
  json["enrolled"] = nullptr;
  json["token"] = token.id;
  json["key"] = nullptr;
  FEDGE_TRY_VOID(add_activity(call, *token.client, token.description.project, json));
  return json;
}

bool has_label(const ClientDescription& description, const std::string& label) {
  return label.empty() || std::ranges::binary_search(description.labels, label);
}

// Whether the sender may see the client, and it fits the query.
bool is_wanted(Call& call, ClientId client, const ClientDescription& description, const std::string& state) {
  const std::string project = call.query_text("project");
  const std::string asked = call.query_text("state");
  const std::string online = call.query_text("online");
  if (!call.sees(description.project) || !(project.empty() || project == description.project)) return false;
  if (!(asked.empty() || asked == state) || !has_label(description, call.query_text("label"))) return false;
  const auto& live = call.stores.parts().live;
  return online.empty() || (online == "true") == (live && live->fleet.is_online(client));
}

Result<Reply> list_clients(Call& call) {
  FEDGE_TRY(after, call.query_number("after", 0, UINT32_MAX));
  FEDGE_TRY(limit, call.page_limit());
  const std::string online = call.query_text("online");
  if (!online.empty() && online != "true" && online != "false")
    return invalid("the parameter online must be true or false, not '" + clean_text(online, 80) + "'");
  FEDGE_TRY(book, call.stores.enrolment(call.actor()).snapshot());
  const bool from_start = !call.query.contains("after");
  const auto comes = [&](ClientId client) { return from_start || client.value() > after; };
  std::vector<const TokenRecord*> invitations;
  for (const TokenRecord& token : book->tokens)
    if (token.client && token.used == 0 && comes(*token.client)) invitations.push_back(&token);
  std::ranges::sort(invitations, {}, [](const TokenRecord* token) { return *token->client; });
  auto client = std::ranges::find_if(book->clients, [&](const auto& one) { return comes(one.client); });
  auto invitation = invitations.begin();
  Json items = Json::array();
  std::optional<std::uint64_t> last;
  while (client != book->clients.end() || invitation != invitations.end()) {
    const bool enrolled = invitation == invitations.end() ||
                          (client != book->clients.end() && client->client < *(*invitation)->client);
    const ClientDescription& description = enrolled ? client->description : (*invitation)->description;
    const ClientId number = enrolled ? client->client : *(*invitation)->client;
    if (is_wanted(call, number, description, enrolled ? to_string(client->state) : state_of(**invitation))) {
      if (items.size() == limit) return page_of(std::move(items), last);
      last = number.value();
      FEDGE_TRY(json, enrolled ? client_json(call, *client) : invited_json(call, **invitation));
      items.push_back(std::move(json));
    }
    enrolled ? static_cast<void>(++client) : static_cast<void>(++invitation);
  }
  return page_of(std::move(items), std::nullopt);
}

Result<ClientRecord> find_client(Call& call, Role role) {
  FEDGE_TRY(number, call.number("client"));
  const ClientId id(static_cast<std::uint32_t>(std::min<std::uint64_t>(number, UINT32_MAX)));
  FEDGE_TRY(book, call.stores.enrolment(call.actor()).snapshot());
  const ClientRecord* client = book->find_client(id);
  if (client == nullptr) return no_such_client(id);
  FEDGE_TRY_VOID(call.require(role, client->description.project, no_such_client(id)));
  return *client;
}

Result<Reply> show_client(Call& call) {
  FEDGE_TRY(client, find_client(call, Role::kViewer));
  FEDGE_TRY(json, client_json(call, client));
  const Json settable = described(client.client.value(), client.description, to_string(client.state));
  return Reply{200, std::move(json), settable};
}

// Reads the client again after a change.
Result<Reply> changed(Call& call, ClientId id, int status = 200) {
  FEDGE_TRY(book, call.stores.enrolment(call.actor()).snapshot());
  const ClientRecord* client = book->find_client(id);
  if (client == nullptr) return no_such_client(id);
  FEDGE_TRY(json, client_json(call, *client));
  return Reply{status, std::move(json)};
}

Result<Reply> add_client(Call& call) {
  FEDGE_TRY(key, parse_public_key(call.text("key")));
  ClientDescription description{.name = call.text("name"), .project = call.text("project", kDefaultProject)};
  if (call.has("labels")) {
    FEDGE_TRY(labels, checked_labels(call.body["labels"].get<std::vector<std::string>>()));
    description.labels = std::move(labels);
  }
  FEDGE_TRY_VOID(call.require_project(Role::kOperator, description.project));
  Enrolment& enrolment = call.stores.enrolment(call.actor());
  FEDGE_TRY(book, enrolment.snapshot());
  const auto known = std::ranges::find(book->clients, key, &ClientRecord::key);
  if (known != book->clients.end() && !call.sees(known->description.project))
    return Error{ErrorCode::kRefused, "this key cannot be enrolled here"};
  FEDGE_TRY(client, enrolment.add(key, calendar_now(), description));
  return changed(call, client, 201);
}

Result<Reply> describe_client(Call& call) {
  FEDGE_TRY(client, find_client(call, Role::kOperator));
  DescriptionChange change;
  if (call.has("name")) change.name = call.text("name");
  if (call.has("project")) change.project = call.text("project");
  // Both teams lose or gain a client.
  if (change.project) FEDGE_TRY_VOID(call.require_project(Role::kOperator, *change.project));
  if (call.has("labels")) {
    FEDGE_TRY(labels, checked_labels(call.body["labels"].get<std::vector<std::string>>()));
    change.labels = std::move(labels);
  }
  FEDGE_TRY_VOID(call.stores.enrolment(call.actor()).describe(client.client, change));
  return changed(call, client.client);
}

Result<Reply> approve_client(Call& call) {
  FEDGE_TRY(client, find_client(call, Role::kOperator));
  FEDGE_TRY_VOID(call.stores.enrolment(call.actor()).approve(client.client));
  return changed(call, client.client);
}

Result<Reply> readmit_client(Call& call) {
  FEDGE_TRY(client, find_client(call, Role::kOperator));
  FEDGE_TRY_VOID(call.stores.enrolment(call.actor()).readmit(client.client));
  return changed(call, client.client);
}

// Also revokes the invitation of a client that has not joined.
Result<Reply> revoke_client(Call& call) {
  FEDGE_TRY(number, call.number("client"));
  const ClientId id(static_cast<std::uint32_t>(std::min<std::uint64_t>(number, UINT32_MAX)));
  Enrolment& enrolment = call.stores.enrolment(call.actor());
  FEDGE_TRY(book, enrolment.snapshot());
  const ClientRecord* client = book->find_client(id);
  const auto token =
      std::ranges::find_if(book->tokens, [&](const TokenRecord& one) { return one.client == id; });
  if (client == nullptr && token == book->tokens.end()) return no_such_client(id);
  const ClientDescription& description = client != nullptr ? client->description : token->description;
  FEDGE_TRY_VOID(call.require(Role::kOperator, description.project, no_such_client(id)));
  const auto came_with = std::ranges::find_if(
      book->tokens, [&](const TokenRecord& one) { return client != nullptr && one.id == client->token; });
  // The client may have moved here from another project, whose token is not the sender's.
  const bool foreign = came_with != book->tokens.end() &&
                       !call.request.principal.may(Role::kOperator, came_with->description.project);
  const bool keep = foreign || (call.has("keep_token") && call.body["keep_token"].get<bool>());
  FEDGE_TRY(closed, enrolment.revoke(id, keep));
  FEDGE_TRY(now, enrolment.snapshot());
  Json json;
  const ClientRecord* revoked = now->find_client(id);
  const auto invitation =
      std::ranges::find_if(now->tokens, [&](const TokenRecord& one) { return one.client == id; });
  FEDGE_TRY(shown, revoked != nullptr ? client_json(call, *revoked) : invited_json(call, *invitation));
  json["client"] = std::move(shown);
  json["token_revoked"] = closed ? Json(*closed) : Json();
  return Reply{200, std::move(json)};
}

}  // namespace

std::vector<ApiRoute> client_routes() {
  return {{.method = "GET",
           .path = "/clients",
           .operation = "listClients",
           .summary = "List enrolled and invited clients, by number",
           .role = Role::kViewer,
           .handler = list_clients,
           .answer = "Client[]",
           .query = {{"after", "integer", "Only clients with a higher number"},
                     {"limit", "integer", "Most clients in the answer, at most 1000; default: 100"},
                     {"project", "string", "Only clients of this project"},
                     {"state", "string", "Only clients in this state"},
                     {"label", "string", "Only clients with this label"},
                     {"online", "string", "true: only clients that are connected; false: only others"}}},
          {.method = "POST",
           .path = "/clients",
           .operation = "addClient",
           .summary = "Enrol a device by its public key, without a token",
           .role = Role::kOperator,
           .handler = add_client,
           .body = "NewClient",
           .answer = "Client",
           .success = 201},
          {.method = "GET",
           .path = "/clients/{client}",
           .operation = "showClient",
           .summary = "Show one client",
           .role = Role::kViewer,
           .handler = show_client,
           .answer = "Client"},
          {.method = "PATCH",
           .path = "/clients/{client}",
           .operation = "describeClient",
           .summary = "Change a client's name, labels or project",
           .role = Role::kOperator,
           .handler = describe_client,
           .body = "ClientChange",
           .answer = "Client"},
          {.method = "POST",
           .path = "/clients/{client}/approve",
           .operation = "approveClient",
           .summary = "Approve a pending client",
           .role = Role::kOperator,
           .handler = approve_client,
           .answer = "Client"},
          {.method = "POST",
           .path = "/clients/{client}/readmit",
           .operation = "readmitClient",
           .summary = "Admit a revoked client again, with its key",
           .role = Role::kOperator,
           .handler = readmit_client,
           .answer = "Client"},
          {.method = "POST",
           .path = "/clients/{client}/revoke",
           .operation = "revokeClient",
           .summary = "Revoke a client and disconnect it",
           .role = Role::kOperator,
           .handler = revoke_client,
           .body = "Revocation",
           .answer = "Revoked"}};
}

}  // namespace fedge::server
