// Routes of what happens at present: the progress of runs, and events.
#include <algorithm>
#include <utility>

#include "server/admin/process_figures.h"
#include "server/api/detail/call.h"
#include "server/live/live.h"

namespace fedge::server {
namespace {

Json progress_of(const WatchedTask& task, Time now) {
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
  const bool coded = task.stage == TaskStage::kRefused || task.stage == TaskStage::kFailed;
  json["code"] = coded ? Json(to_string(task.code)) : Json();
  json["reason"] = task.reason.empty() ? Json() : Json(task.reason);
  return json;
}

Json tasks_json(const std::vector<WatchedTask>& tasks, Time now) {
  Json list = Json::array();
  for (const WatchedTask& task : tasks) list.push_back(progress_of(task, now));
  return list;
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
  json["tasks"] = tasks_json(now.tasks, now.now);
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
    for (const Live::Membership& one : live->memberships(client))
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
