// Routes of join tokens.
#include <algorithm>
#include <chrono>
#include <utility>

#include "protocol/join_token.h"
#include "server/api/detail/call.h"
#include "server/contact/key_rotation.h"
#include "server/data_directory.h"

namespace fedge::server {
namespace {

constexpr std::uint64_t kMostTokens = 100'000;
constexpr std::uint64_t kMostUses = 1'000'000;
constexpr double kMostHours = 87'600;

Json token_json(const TokenRecord& token) {
  Json json;
  json["token"] = token.id;
  json["state"] = state_of(token, calendar_now());
  json["used"] = token.used;
  json["uses"] = token.uses;
  json["approve"] = token.approve;
  json["client"] = number_or_null(token.client);
  json["replaces"] = number_or_null(token.replaces);
  json["name"] = token.description.name;
  json["labels"] = token.description.labels;
  json["project"] = token.description.project;
  json["created"] = calendar_text(token.created);
  json["expires"] = calendar_text(token.expires);
  return json;
}

Result<Reply> list_tokens(Call& call) {
  FEDGE_TRY(after, call.query_number("after", 0, UINT32_MAX));
  FEDGE_TRY(limit, call.page_limit());
  FEDGE_TRY(book, call.stores.enrolment(call.actor()).snapshot());
  Json items = Json::array();
  std::optional<std::uint64_t> last;
  for (const TokenRecord& token : book->tokens) {
    if (token.id <= after || !call.request.principal.may(Role::kOperator, token.description.project))
      continue;
    if (items.size() == limit) return page_of(std::move(items), last);
    last = token.id;
    items.push_back(token_json(token));
  }
  return page_of(std::move(items), std::nullopt);
}

// The addresses for a token; none if clients must look the coordinator up in the directory.
Result<std::vector<protocol::Address>> token_addresses(const Call& call) {
  if (call.has("no_address") && call.body["no_address"].get<bool>()) {
    if (call.has("address")) return invalid("no_address and address exclude each other");
    return std::vector<protocol::Address>();
  }
  if (call.has("address")) {
    FEDGE_TRY(address, protocol::parse_address(call.text("address")));
    return std::vector{address};
  }
  FEDGE_TRY(addresses, client_addresses(call.stores.parts().data_directory));
  const std::string& host = addresses.front().host;
  if (host == "0.0.0.0" || host == "::")
    return invalid(
        "the address of the token is missing: the coordinator listens on all addresses of this machine; give "
        "the address at which clients reach the coordinator: --address HOST:PORT, or the key addresses of "
        "the configuration");
  return addresses;
}

Result<std::uint64_t> bounded(const Call& call, const char* field, std::uint64_t most) {
  const auto number = call.has(field) ? call.body[field].get<std::uint64_t>() : 1;
  if (number >= 1 && number <= most) return number;
  return invalid(std::string("the field ") + field + " must be from 1 to " + std::to_string(most));
}

Result<TokenOrder> order_of(const Call& call) {
  TokenOrder order{.now = calendar_now()};
  FEDGE_TRY(count, bounded(call, "count", kMostTokens));
  FEDGE_TRY(uses, bounded(call, "uses", kMostUses));
  order.count = count;
  order.uses = static_cast<std::uint32_t>(uses);
  order.approve = call.has("approve") && call.body["approve"].get<bool>();
  const double hours = call.has("hours") ? call.body["hours"].get<double>() : 24;
  if (!(hours >= 0.001 && hours <= kMostHours)) return invalid("the field hours must be from 0.001 to 87600");
  order.lifetime = std::chrono::seconds(static_cast<std::int64_t>(hours * 3600));
  order.description.name = call.text("name");
  order.description.project = call.text("project", kDefaultProject);
  if (call.has("labels")) {
    FEDGE_TRY(labels, checked_labels(call.body["labels"].get<std::vector<std::string>>()));
    order.description.labels = std::move(labels);
  }
  return order;
}

// The device that joins gets the number and the description of this client.
Result<void> add_replaced(Call& call, TokenOrder& order) {
  for (const char* field : {"name", "labels", "project"})
    if (call.has(field))
      return invalid(std::string("replaces and ") + field + " exclude each other: the client keeps its own");
  const ClientId client(static_cast<std::uint32_t>(
      std::min<std::uint64_t>(call.body["replaces"].get<std::uint64_t>(), UINT32_MAX)));
  FEDGE_TRY(book, call.stores.enrolment(call.actor()).snapshot());
  const ClientRecord* known = book->find_client(client);
  const Error missing{ErrorCode::kNotFound, "there is no client " + std::to_string(client.value()) +
                                                "; list clients with: fedge client ls"};
  if (known == nullptr) return missing;
  FEDGE_TRY_VOID(call.require(Role::kOperator, known->description.project, missing));
  order.replaces = client;
  order.description = known->description;
  return {};
}

Result<Reply> create_tokens(Call& call) {
  FEDGE_TRY(order, order_of(call));
  if (call.has("replaces")) FEDGE_TRY_VOID(add_replaced(call, order));
  FEDGE_TRY_VOID(call.require_project(Role::kOperator, order.description.project));
  FEDGE_TRY(addresses, token_addresses(call));  // first: an error leaves no new directory behind
  FEDGE_TRY(key, key_in_force(call.stores.parts().data_directory, call.stores.enrolment(call.actor())));
  FEDGE_TRY(created, call.stores.enrolment(call.actor()).create_tokens(order));
  Json items = Json::array();
  for (const NewToken& token : created) {
    Json item;
    item["token"] = token.id;
    item["client"] = number_or_null(token.client);
    item["join"] = protocol::encode_join_token(
        {.addresses = addresses, .coordinator = key.public_key(), .secret = token.secret});
    items.push_back(std::move(item));
  }
  Json json;
  json["items"] = std::move(items);
  return Reply{201, std::move(json)};
}

Result<Reply> revoke_token(Call& call) {
  FEDGE_TRY(number, call.number("token"));
  const Error missing{ErrorCode::kNotFound,
                      "there is no token " + std::to_string(number) + "; see: fedge token ls"};
  Enrolment& enrolment = call.stores.enrolment(call.actor());
  FEDGE_TRY(book, enrolment.snapshot());
  const auto found = [&](const EnrolmentBook& tokens) {
    return std::ranges::find_if(tokens.tokens, [&](const TokenRecord& one) { return one.id == number; });
  };
  if (found(*book) == book->tokens.end()) return missing;
  FEDGE_TRY_VOID(call.require(Role::kOperator, found(*book)->description.project, missing));
  FEDGE_TRY_VOID(enrolment.revoke_token(static_cast<std::uint32_t>(number)));
  FEDGE_TRY(now, enrolment.snapshot());
  return Reply{200, token_json(*found(*now))};
}

}  // namespace

std::vector<ApiRoute> join_token_routes() {
  return {{.method = "GET",
           .path = "/join-tokens",
           .operation = "listJoinTokens",
           .summary = "List join tokens without their secrets, by number",
           .role = Role::kOperator,
           .handler = list_tokens,
           .answer = "JoinToken[]",
           .query = {{"after", "integer", "Only tokens with a higher number"},
                     {"limit", "integer", "Most tokens in the answer, at most 1000; default: 100"}}},
          {.method = "POST",
           .path = "/join-tokens",
           .operation = "createJoinTokens",
           .summary = "Create join tokens",
           .role = Role::kOperator,
           .handler = create_tokens,
           .body = "NewJoinTokens",
           .answer = "CreatedJoinTokens",
           .success = 201},
          {.method = "POST",
           .path = "/join-tokens/{token}/revoke",
           .operation = "revokeJoinToken",
           .summary = "Revoke a join token, so that no further client can join with it",
           .role = Role::kOperator,
           .handler = revoke_token,
           .answer = "JoinToken"}};
}

}  // namespace fedge::server
