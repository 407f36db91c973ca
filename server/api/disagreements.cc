// Routes of the disagreements between a run's clients (tracks).
#include <algorithm>
#include <utility>

#include "core/config/document.h"
#include "server/api/detail/call.h"
#include "server/policy_file.h"

namespace fedge::server {
namespace {

constexpr const char* kRequest = "the request";

Result<RunRecord> run_of(Call& call, Role role) {
  FEDGE_TRY(store, call.stores.runs());
  return call.find_run(*store, role);
}

PolicyFile file_of(const Call& call, const RunRecord& run) {
  PolicyFile file(call.stores.parts().data_directory, run.number);
  file.act_as(call.actor());
  return file;
}

// The disagreements of the run file. All others were added during the run.
Result<std::vector<aggregation::Disagreement>> in_run_file(const RunRecord& run, std::size_t clients) {
  FEDGE_TRY(document, config::parse_toml(run.document, "run " + std::to_string(run.number.value())));
  config::Reader root(document.root, "", document.name);
  config::Reader section = root.section("tracks");
  return aggregation::read_policy(section, clients).disagreements;
}

Json names(const aggregation::Policy& policy, const std::vector<ClientId>& clients) {
  Json list = Json::array();
  for (const ClientId client : clients) list.push_back(policy.name(client));
  return list;
}

Result<Reply> list_disagreements(Call& call) {
  FEDGE_TRY(after, call.query_number("after", 0, INT32_MAX));
  FEDGE_TRY(limit, call.page_limit());
  FEDGE_TRY(run, run_of(call, Role::kViewer));
  FEDGE_TRY(policy, file_of(call, run).read());
  FEDGE_TRY(own, in_run_file(run, policy.clients));
  Json items = Json::array();
  std::uint64_t number = 0;
  for (const aggregation::Disagreement& entry : policy.disagreements) {
    if (++number <= after) continue;
    if (items.size() == limit) return page_of(std::move(items), number - 1);
    const bool added = std::ranges::find(own, entry) == own.end();
    const bool data = entry.kind == aggregation::DisagreementKind::kPartialData;
    // The engine starts an added disagreement in the round after the change (TrackBook::adopt). A deep one
    // also removes what was contributed from round 1.
    const bool undated = added && !entry.deep && entry.from_round == RoundNumber(1);
    Json item;
    item["number"] = number;
    item["kind"] = aggregation::name_of(entry.kind);
    item["clients"] = names(policy, entry.clients);
    item["against"] = names(policy, entry.against);
    item["from_round"] = undated ? Json() : Json(entry.from_round.value());
    item["until_round"] = entry.until_round ? Json(entry.until_round->value()) : Json();
    item["past"] = data ? Json() : Json(entry.deep || policy.strict ? "removed" : "stays");
    items.push_back(std::move(item));
  }
  return page_of(std::move(items), std::nullopt);
}

config::Value texts(const Json& list) {
  config::Array array;
  for (const Json& text : list) array.push_back({text.get<std::string>(), kRequest});
  return {std::move(array), kRequest};
}

Result<Reply> add_disagreement(Call& call) {
  config::Table table;
  table.emplace("kind", config::Value{call.text("kind"), kRequest});
  table.emplace("clients", texts(call.body["clients"]));
  if (call.has("against") && !call.body["against"].empty())
    table.emplace("against", texts(call.body["against"]));
  for (const char* round : {"from_round", "until_round"})
    if (call.has(round)) {
      const auto number = call.body[round].get<std::uint64_t>();
      if (number > INT32_MAX) return invalid(std::string("the field ") + round + " is too large");
      table.emplace(round, config::Value{static_cast<std::int64_t>(number), kRequest});
    }
  if (call.has("withheld"))
    table.emplace("withheld", config::Value{call.body["withheld"].get<double>(), kRequest});
  if (call.has("deep") && call.body["deep"].get<bool>()) table.emplace("deep", config::Value{true, kRequest});
  FEDGE_TRY(run, run_of(call, Role::kOperator));
  FEDGE_TRY(place, file_of(call, run).add(table));
  Json json;
  json["number"] = place;
  return Reply{201, std::move(json)};
}

Result<Reply> lift_disagreement(Call& call) {
  FEDGE_TRY(run, run_of(call, Role::kOperator));
  FEDGE_TRY(place, call.number("disagreement"));
  FEDGE_TRY_VOID(file_of(call, run).lift(place));
  Json json;
  json["number"] = place;
  return Reply{200, std::move(json)};
}

}  // namespace

std::vector<ApiRoute> disagreement_routes() {
  return {{.method = "GET",
           .path = "/runs/{run}/disagreements",
           .operation = "listDisagreements",
           .summary = "List the disagreements between a run's clients",
           .role = Role::kViewer,
           .handler = list_disagreements,
           .answer = "Disagreement[]",
           .query = {{"after", "integer", "Only disagreements with a higher number"},
                     {"limit", "integer", "Most items in the answer, at most 1000; default: 100"}}},
          {.method = "POST",
           .path = "/runs/{run}/disagreements",
           .operation = "addDisagreement",
           .summary = "Add a disagreement, from the next round on",
           .role = Role::kOperator,
           .handler = add_disagreement,
           .body = "NewDisagreement",
           .answer = "AddedDisagreement",
           .success = 201},
          {.method = "DELETE",
           .path = "/runs/{run}/disagreements/{disagreement}",
           .operation = "liftDisagreement",
           .summary = "Lift a disagreement after the current round",
           .role = Role::kOperator,
           .handler = lift_disagreement,
           .answer = "AddedDisagreement"}};
}

}  // namespace fedge::server
