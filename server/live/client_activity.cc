#include "server/live/client_activity.h"

#include "core/detail/json.h"

namespace fedge::server {
namespace {

using ActivityJson = nlohmann::ordered_json;

ActivityJson task_json(const ClientActivity::Task& task) {
  return {{"run", task.run.value()},
          {"round", task.round.value()},
          {"kind", task.kind},
          {"outcome", task.outcome},
          {"ended", task.ended},
          {"training_seconds", task.training_seconds},
          {"upload_seconds", task.upload_seconds},
          {"bytes", task.bytes}};
}

ActivityJson failure_json(const ClientActivity::Failure& failure) {
  return {{"run", failure.run.value()},
          {"round", failure.round.value()},
          {"kind", failure.kind},
          {"reason", failure.reason},
          {"at", failure.at}};
}

RoundNumber round_of(const ActivityJson& json) { return RoundNumber(json.at("round").get<std::uint32_t>()); }
RunNumber run_of(const ActivityJson& json) { return RunNumber(json.at("run").get<std::int64_t>()); }

}  // namespace

void forget_tasks(ClientActivity& activity) {
  activity.accepted = 0;
  activity.failures.clear();
  activity.last_task.reset();
  activity.last_failure.reset();
}

std::string encode_activity(const ClientActivity& activity) {
  ActivityJson json;
  json["last_seen"] = activity.last_seen;
  json["address"] = activity.address;
  json["software"] = activity.software;
  json["platform"] = activity.platform;
  json["project"] = activity.project;
  json["accepted"] = activity.accepted;
  json["failures"] = activity.failures;
  json["received"] = activity.received;
  json["sent"] = activity.sent;
  if (!activity.kept_key.empty()) {
    json["kept_key"] = activity.kept_key;
    json["kept_by"] = activity.kept_by;
  }
  if (activity.last_task) json["last_task"] = task_json(*activity.last_task);
  if (activity.last_failure) json["last_failure"] = failure_json(*activity.last_failure);
  return json_text(json);
}

Result<ClientActivity> parse_activity(ClientId client, const std::string& text) {
  const ActivityJson json = parse_ordered_json(text, kMaxJsonLevels);
  try {
    ClientActivity activity{.client = client};
    activity.last_seen = json.at("last_seen").get<UnixSeconds>();
    json.at("address").get_to(activity.address);
    json.at("software").get_to(activity.software);
    json.at("platform").get_to(activity.platform);
    json.at("project").get_to(activity.project);
    json.at("accepted").get_to(activity.accepted);
    json.at("failures").get_to(activity.failures);
    json.at("received").get_to(activity.received);
    json.at("sent").get_to(activity.sent);
    activity.kept_key = json.value("kept_key", "");
    activity.kept_by = json.value("kept_by", "");
    if (json.contains("last_task")) {
      const ActivityJson& task = json["last_task"];
      activity.last_task = {run_of(task),
                            round_of(task),
                            task.at("kind").get<std::string>(),
                            task.at("outcome").get<std::string>(),
                            task.at("ended").get<UnixSeconds>(),
                            task.at("training_seconds").get<double>(),
                            task.at("upload_seconds").get<double>(),
                            task.at("bytes").get<std::uint64_t>()};
    }
    if (json.contains("last_failure")) {
      const ActivityJson& failure = json["last_failure"];
      activity.last_failure = {run_of(failure), round_of(failure), failure.at("kind").get<std::string>(),
                               failure.at("reason").get<std::string>(), failure.at("at").get<UnixSeconds>()};
    }
    return activity;
  } catch (const nlohmann::json::exception& wrong) {
    return Error{ErrorCode::kCorrupt,
                 "the row of client " + std::to_string(client.value()) + " is damaged: " + wrong.what()};
  }
}

}  // namespace fedge::server
