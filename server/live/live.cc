#include "server/live/live.h"

#include <chrono>
#include <utility>
#include <vector>

#include "core/detail/json.h"
#include "core/platform/log_format.h"

namespace fedge::server {
namespace {

std::optional<std::int64_t> number_in(const Event& event, const char* key) {
  for (const auto& [name, value] : event.fields)
    if (name == key)
      if (const auto* number = std::get_if<std::int64_t>(&value)) return *number;
  return std::nullopt;
}

std::string progress_text(RunNumber run, const LiveRun& progress) {
  std::map<std::string, std::size_t> stages;
  for (const WatchedTask& task : progress.tasks) ++stages[name_of(task.stage)];
  nlohmann::ordered_json json;
  json["run"] = run.value();
  json["round"] = progress.round.value();
  json["tasks"] = stages;
  json["ready"] = progress.ready;
  json["declined"] = progress.declined.size();
  json["needed"] =
      progress.waiting ? nlohmann::ordered_json(progress.waiting->needed) : nlohmann::ordered_json();
  return json_text(json);
}

}  // namespace

void Live::open(RunNumber run, const std::string& project, std::shared_ptr<const RunWatch> watch) {
  const std::lock_guard lock(mutex_);
  runs_.insert_or_assign(run, Led{project, std::move(watch)});
}

void Live::close(RunNumber run) {
  const std::lock_guard lock(mutex_);
  runs_.erase(run);
}

void Live::set_project(ClientId client, const std::string& project) {
  const std::lock_guard lock(mutex_);
  projects_.insert_or_assign(client, project);
}

void Live::publish(const Event& event) {
  if (event.severity == Severity::kDebug) return;
  FeedEvent one{.name = event.name, .data = json_line(event, std::chrono::system_clock::now())};
  if (const auto run = number_in(event, "run")) one.run = RunNumber(*run);
  if (const auto client = number_in(event, "client"))
    one.client = ClientId(static_cast<std::uint32_t>(*client));
  {
    const std::lock_guard lock(mutex_);
    const auto led = one.run ? runs_.find(*one.run) : runs_.end();
    const auto known = one.client ? projects_.find(*one.client) : projects_.end();
    if (led != runs_.end())
      one.project = led->second.project;
    else if (!one.run && known != projects_.end())
      one.project = known->second;
  }
  feed.publish(std::move(one));
}

void Live::publish_round(RunNumber run, const std::string& metrics) {
  FeedEvent one{.name = "round",
                .run = run,
                .data = "{\"run\":" + std::to_string(run.value()) + ",\"metrics\":" + metrics + "}"};
  {
    const std::lock_guard lock(mutex_);
    if (const auto led = runs_.find(run); led != runs_.end()) one.project = led->second.project;
  }
  feed.publish(std::move(one));
}

void Live::publish_progress() {
  std::vector<FeedEvent> changed;
  {
    const std::lock_guard lock(mutex_);
    for (auto& [run, led] : runs_) {
      const std::uint64_t version = led.watch->version();
      if (std::exchange(led.told, version) == version) continue;
      changed.push_back({.name = "progress",
                         .project = led.project,
                         .run = run,
                         .data = progress_text(run, led.watch->progress())});
    }
  }
  for (FeedEvent& one : changed) feed.publish(std::move(one));
}

std::vector<Live::Membership> Live::memberships(ClientId client) const {
  const std::lock_guard lock(mutex_);
  std::vector<Membership> list;
  for (const auto& [run, led] : runs_)
    if (const auto standing = led.watch->standing(client))
      list.push_back({run, standing->first, standing->second});
  return list;
}

std::shared_ptr<const RunWatch> Live::watch(RunNumber run) const {
  const std::lock_guard lock(mutex_);
  const auto led = runs_.find(run);
  return led == runs_.end() ? nullptr : led->second.watch;
}

}  // namespace fedge::server
