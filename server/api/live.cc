// Routes of what happens at present: the progress of runs, and events.
#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "server/admin/process_figures.h"
#include "server/api/detail/call.h"
#include "server/live/live.h"

namespace fedge::server {
namespace {

// Bytes of updates that are being uploaded.
using Received = std::map<std::pair<ClientId, TaskId>, std::uint64_t>;

Json progress_of(const WatchedTask& task, Time now, const Received& received) {
  const Time end = task.ended.value_or(now);
  Json json;
  json["client"] = task.client.value();
  json["round"] = task.task.round.value();
  json["track"] = task.task.track.value();
  json["kind"] = name_of(task.task.kind);
  json["stage"] = name_of(task.stage);
  json["asked"] = time_or_null(task.asked_date);
  json["training_seconds"] = to_seconds(task.offered.value_or(end) - task.asked);
  json["upload_seconds"] = task.offered ? Json(to_seconds(end - *task.offered)) : Json();
  json["bytes"] = task.offered ? Json(task.bytes) : Json();
  const auto arrived = received.find({task.client, task.task});
  json["received_bytes"] = arrived == received.end() ? Json() : Json(arrived->second);
  const bool coded = task.stage == TaskStage::kRefused || task.stage == TaskStage::kFailed;
  json["code"] = coded ? Json(to_string(task.code)) : Json();
  json["reason"] = task.reason.empty() ? Json() : Json(task.reason);
  return json;
}

Json tasks_json(const std::vector<WatchedTask>& tasks, Time now, const Received& received = {}) {
  Json list = Json::array();
  for (const WatchedTask& task : tasks) list.push_back(progress_of(task, now, received));
  return list;
}

Received received_in(const Live& live, RunNumber run) {
  Received received;
  for (const Transfers::Listed& one : live.transfers->list(0, SIZE_MAX, [&](const TransferFacts& facts) {
         return facts.run == run && facts.object == TransferObject::kUpdate;
       }))
    received[{one.facts.client, one.facts.task}] = one.done;
  return received;
}

Json transfer_json(const Transfers::Listed& transfer) {
  const TransferFacts& facts = transfer.facts;
  Json json;
  json["transfer"] = transfer.number;
  json["client"] = facts.client.value();
  json["run"] = facts.run.value();
  json["project"] = facts.project;
  json["round"] = facts.task.round.value();
  json["track"] = facts.task.track.value();
  json["kind"] = name_of(facts.task.kind);
  json["direction"] = facts.object == TransferObject::kUpdate ? "upload" : "download";
  json["object"] = name_of(facts.object);
  json["bytes"] = facts.bytes;
  json["done"] = transfer.done;
  json["waits_for"] = transfer.wait == TransferWait::kNone   ? Json()
                      : transfer.wait == TransferWait::kTurn ? Json("turn")
                                                             : Json("disk");
  json["since"] = calendar_text(transfer.since);
  json["bytes_per_second"] = transfer.rate ? Json(std::llround(*transfer.rate)) : Json();
  return json;
}

Result<Reply> list_transfers(Call& call) {
  FEDGE_TRY(after, call.query_number("after", 0, INT64_MAX));
  FEDGE_TRY(limit, call.page_limit());
  FEDGE_TRY(run, call.query_number("run", 0, INT64_MAX));
  FEDGE_TRY(client, call.query_number("client", 0, UINT32_MAX));
  const std::string project = call.query_text("project");
  const auto& live = call.stores.parts().live;
  if (!live) return page_of(Json::array(), std::nullopt);
  const auto list = live->transfers->list(after, limit + 1, [&](const TransferFacts& facts) {
    return call.sees(facts.project) && (project.empty() || project == facts.project) &&
           (!call.query.contains("run") || static_cast<std::uint64_t>(facts.run.value()) == run) &&
           (!call.query.contains("client") || facts.client.value() == client);
  });
  Json items = Json::array();
  std::optional<std::uint64_t> last;
  for (const Transfers::Listed& one : list) {
    if (items.size() == limit) return page_of(std::move(items), last);
    last = one.number;
    items.push_back(transfer_json(one));
  }
  return page_of(std::move(items), std::nullopt);
}

Result<Reply> show_progress(Call& call) {
  FEDGE_TRY(store, call.stores.runs());
  FEDGE_TRY(run, call.find_run(*store, Role::kViewer));
  const auto& live = call.stores.parts().live;
  const auto watch = live ? live->watch(run.number) : nullptr;
  const LiveRun now = watch ? watch->progress() : LiveRun{};
  Json json;
  json["run"] = run.number.value();
  json["led"] = watch != nullptr;
  json["round"] = now.round.value();
  json["tasks"] = tasks_json(now.tasks, now.now, live ? received_in(*live, run.number) : Received());
  json["last_round"] = now.last_round.value();
  json["last_tasks"] = tasks_json(now.last, now.now);
  json["ready"] = now.ready;
  json["preparing"] = now.preparing;
  json["declined"] = Json::array();
  for (const LiveRun::Declined& one : now.declined)
    json["declined"].push_back(
        {{"client", one.client.value()}, {"reason", one.reason}, {"since", time_or_null(one.date)}});
  json["quarantined"] = Json::array();
  for (const LiveRun::Quarantined& one : now.quarantined)
    json["quarantined"].push_back({{"client", one.client.value()},
                                   {"failures", one.failures},
                                   {"round", one.round.value()},
                                   {"rounds", one.rounds}});
  const RunFacts facts = watch ? watch->facts() : RunFacts{};
  const auto resident = live ? process_figures().resident_bytes : std::nullopt;
  json["model_bytes"] = facts.model_bytes == 0 ? Json() : Json(facts.model_bytes);
  json["memory_bytes"] = resident ? Json(static_cast<std::uint64_t>(*resident)) : Json();
  json["ends_after"] = facts.last_round == 0 ? Json() : Json(facts.last_round);
  json["epsilon_budget"] = facts.epsilon ? Json(*facts.epsilon) : Json();
  json["delta"] = facts.delta > 0 ? Json(facts.delta) : Json();
  json["secure"] = Json();
  if (now.secure) {
    Json& secure = json["secure"];
    secure["stage"] = now.secure->stage.stage;
    secure["round"] = now.secure->stage.task.round.value();
    secure["attempt"] = now.secure->stage.attempt;
    secure["since"] = time_or_null(now.secure->date);
    secure["awaited"] = Json::array();
    for (const ClientId client : now.secure->stage.awaited) secure["awaited"].push_back(client.value());
  }
  json["waiting"] = waiting_of(call, run.number);
  return Reply{200, std::move(json)};
}

// ApiService answers this path while a coordinator runs.
Result<Reply> no_events(Call&) {
  return Error{ErrorCode::kUnavailable, "no coordinator runs in this data directory, so nothing happens"};
}

Json last_task_json(const ClientActivity::Task& task) {
  return {{"run", task.run.value()},
          {"round", task.round.value()},
          {"kind", task.kind},
          {"outcome", task.outcome},
          {"ended", calendar_text(task.ended)},
          {"training_seconds", task.training_seconds},
          {"upload_seconds", task.upload_seconds},
          {"bytes", task.bytes}};
}

Json last_failure_json(const ClientActivity::Failure& failure) {
  return {{"run", failure.run.value()},
          {"round", failure.round.value()},
          {"kind", failure.kind},
          {"reason", failure.reason},
          {"at", calendar_text(failure.at)}};
}

}  // namespace

Json waiting_of(const Call& call, RunNumber run) {
  const auto& live = call.stores.parts().live;
  const auto watch = live ? live->watch(run) : nullptr;
  const auto waiting = watch ? watch->waiting() : std::nullopt;
  if (!waiting) return nullptr;
  Json json;
  json["round"] = waiting->round.value();
  json["ready"] = waiting->clients;
  json["needed"] = waiting->needed;
  json["since"] = calendar_text(waiting->date);
  return json;
}

Result<void> add_activity(Call& call, ClientId client, const std::string& project, Json& json) {
  FEDGE_TRY(found, call.stores.activity(client));
  ClientActivity activity = found.value_or(ClientActivity{.client = client});
  // It may have been moved while no coordinator ran.
  if (activity.project != project) forget_tasks(activity);
  const auto text_or_null = [](const std::string& text) { return text.empty() ? Json() : Json(text); };
  json["online"] = activity.online_since != 0;
  json["online_since"] = time_or_null(activity.online_since);
  json["last_seen"] = time_or_null(activity.last_seen);
  json["address"] = text_or_null(activity.address);
  json["software"] = text_or_null(activity.software);
  json["platform"] = text_or_null(activity.platform);
  json["accepted"] = activity.accepted;
  json["failures"] = Json::object();
  for (const auto& [kind, count] : activity.failures) json["failures"][kind] = count;
  json["received"] = activity.received;
  json["sent"] = activity.sent;
  json["kept_key"] = text_or_null(activity.kept_key);
  json["last_task"] = activity.last_task ? last_task_json(*activity.last_task) : Json();
  json["last_failure"] = activity.last_failure ? last_failure_json(*activity.last_failure) : Json();
  json["runs"] = Json::array();
  const auto& live = call.stores.parts().live;
  if (live)
    for (const Live::Membership& one : live->memberships(client, project))
      json["runs"].push_back(
          {{"run", one.run.value()}, {"state", one.state}, {"reason", text_or_null(one.reason)}});
  return {};
}

std::vector<ApiRoute> live_routes() {
  return {{.method = "GET",
           .path = "/runs/{run}/progress",
           .operation = "showProgress",
           .summary = "Show the tasks of the current and the last round, and what the run waits for",
           .role = Role::kViewer,
           .handler = show_progress,
           .answer = "Progress"},
          {.method = "GET",
           .path = "/transfers",
           .operation = "listTransfers",
           .summary = "List the models and updates that move between the coordinator and its clients",
           .role = Role::kViewer,
           .handler = list_transfers,
           .answer = "Transfer[]",
           .query = {{"after", "integer", "Only items with a higher number"},
                     {"limit", "integer", "Most items in the answer, at most 1000; default: 100"},
                     {"run", "integer", "Only transfers of this run"},
                     {"client", "integer", "Only transfers of this client"},
                     {"project", "string", "Only transfers of this project's runs"}}},
          {.method = "GET",
           .path = "/events",
           .operation = "watchEvents",
           .summary = "Watch events as they happen, as a text/event-stream",
           .role = Role::kViewer,
           .handler = no_events,
           .query = {{"run", "integer", "Only events of this run"},
                     {"names", "string", "Only events with these names, separated by commas"}},
           .stream = true}};
}

}  // namespace fedge::server
