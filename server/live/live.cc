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

std::string progress_text(RunNumber run, const RunWatch& watch) {
  const RunWatch::Counts counts = watch.counts();
  const auto waiting = watch.waiting();
  nlohmann::ordered_json json;
  json["run"] = run.value();
  json["round"] = counts.round.value();
  json["tasks"] = nlohmann::ordered_json::object();
  for (const auto& [stage, count] : counts.tasks) json["tasks"][name_of(stage)] = count;
  json["ready"] = counts.ready;
  json["declined"] = counts.declined;
  json["needed"] = waiting ? nlohmann::ordered_json(waiting->needed) : nlohmann::ordered_json();
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
  fleet.set_project(client, project);
  const std::lock_guard lock(mutex_);
  projects_.insert_or_assign(client, project);
}

std::string Live::project_of(ClientId client) const {
  const std::lock_guard lock(mutex_);
  const auto known = projects_.find(client);
  return known == projects_.end() ? std::string() : known->second;
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
  struct Changed {
    RunNumber run;
    Led led;
  };
  std::vector<Changed> changed;
  {
    const std::lock_guard lock(mutex_);
    for (auto& [run, led] : runs_) {
      const std::uint64_t version = led.watch->version();
      if (std::exchange(led.told, version) != version) changed.push_back({run, led});
    }
  }
  for (const Changed& one : changed)
    feed.publish({.name = "progress",
                  .project = one.led.project,
                  .run = one.run,
                  .data = progress_text(one.run, *one.led.watch)});
}

std::vector<Live::Membership> Live::memberships(ClientId client, const std::string& project) const {
  const std::lock_guard lock(mutex_);
  std::vector<Membership> list;
  for (const auto& [run, led] : runs_)
    if (const auto standing = led.project == project ? led.watch->standing(client) : std::nullopt)
      list.push_back({run, standing->first, standing->second});
  return list;
}

std::vector<Live::LongWait> Live::waiting_longer(Duration limit) const {
  std::vector<LongWait> list;
  for (const auto& [run, watch] : led()) {
    const auto waiting = watch->waiting();
    if (waiting && watch->now() - waiting->since >= limit)
      list.push_back({run, waiting->clients, waiting->needed});
  }
  return list;
}

std::vector<std::pair<RunNumber, std::shared_ptr<const RunWatch>>> Live::led() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::pair<RunNumber, std::shared_ptr<const RunWatch>>> list;
  for (const auto& [run, led] : runs_) list.emplace_back(run, led.watch);
  return list;
}

std::shared_ptr<const RunWatch> Live::watch(RunNumber run) const {
  const std::lock_guard lock(mutex_);
  const auto led = runs_.find(run);
  return led == runs_.end() ? nullptr : led->second.watch;
}

}  // namespace fedge::server
