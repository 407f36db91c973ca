#include "server/live/fleet.h"

#include <utility>

#include "core/text.h"

namespace fedge::server {
namespace {

constexpr std::size_t kMostShown = 400;  // bytes of a reason

std::string outcome_of(const WatchedTask& task) {
  const std::string stage = name_of(task.stage);
  const bool coded = task.stage == TaskStage::kFailed || task.stage == TaskStage::kRefused;
  return coded ? stage + "." + to_string(task.code) : stage;
}

}  // namespace

ClientActivity& Fleet::change(ClientId client) {
  changed_.insert(client);
  ClientActivity& activity = clients_[client];
  activity.client = client;
  return activity;
}

void Fleet::take_up(std::vector<ClientActivity> kept) {
  const std::lock_guard lock(mutex_);
  for (ClientActivity& activity : kept) {
    const ClientId client = activity.client;
    clients_.insert_or_assign(client, std::move(activity));
  }
}

void Fleet::connected(ClientId client, const std::string& address, const std::string& software,
                      const std::string& platform, UnixSeconds now) {
  const std::lock_guard lock(mutex_);
  ClientActivity& activity = change(client);
  if (activity.online_since == 0) ++online_;
  activity.online_since = now;
  activity.last_seen = now;
  activity.address = address;
  activity.software = clean_text(software, kMostShown);
  activity.platform = clean_text(platform, kMostShown);
}

void Fleet::disconnected(ClientId client, UnixSeconds now) {
  const std::lock_guard lock(mutex_);
  ClientActivity& activity = change(client);
  if (activity.online_since != 0) --online_;
  activity.online_since = 0;
  activity.last_seen = now;
}

void Fleet::moved(ClientId client, std::uint64_t received, std::uint64_t sent) {
  if (received == 0 && sent == 0) return;
  const std::lock_guard lock(mutex_);
  ClientActivity& activity = change(client);
  activity.received += received;
  activity.sent += sent;
}

void Fleet::tells_key(ClientId client, const std::optional<PublicKey>& next) {
  const std::lock_guard lock(mutex_);
  const auto known = clients_.find(client);
  if (known == clients_.end() || known->second.kept_key == (next ? to_hex(*next) : "")) return;
  ClientActivity& activity = change(client);
  activity.kept_key.clear();
  activity.kept_by.clear();
}

void Fleet::keeps_key(ClientId client, const PublicKey& device, const PublicKey& next) {
  const std::lock_guard lock(mutex_);
  ClientActivity& activity = change(client);
  activity.kept_key = to_hex(next);
  activity.kept_by = to_hex(device);
}

void Fleet::ended(RunNumber run, const WatchedTask& task, UnixSeconds now) {
  const std::lock_guard lock(mutex_);
  ClientActivity& activity = change(task.client);
  const Time end = task.ended.value_or(task.asked);
  activity.last_task = {.run = run,
                        .round = task.task.round,
                        .kind = name_of(task.task.kind),
                        .outcome = name_of(task.stage),
                        .ended = now,
                        .training_seconds = task.offered ? to_seconds(*task.offered - task.asked) : 0,
                        .upload_seconds = task.offered ? to_seconds(end - *task.offered) : 0,
                        .bytes = task.bytes};
  const std::string kind = outcome_of(task);
  ++outcomes_[kind];
  if (task.stage == TaskStage::kAccepted) ++activity.accepted;
  if (task.stage == TaskStage::kAccepted || task.stage == TaskStage::kUnneeded) return;
  ++activity.failures[kind];
  activity.last_failure = {run, task.task.round, kind, clean_text(task.reason, kMostShown), now};
}

std::optional<ClientActivity> Fleet::find(ClientId client, UnixSeconds now) const {
  const std::lock_guard lock(mutex_);
  const auto found = clients_.find(client);
  if (found == clients_.end()) return std::nullopt;
  ClientActivity activity = found->second;
  if (activity.online_since != 0) activity.last_seen = now;
  return activity;
}

bool Fleet::is_online(ClientId client) const {
  const std::lock_guard lock(mutex_);
  const auto found = clients_.find(client);
  return found != clients_.end() && found->second.online_since != 0;
}

std::size_t Fleet::online() const {
  const std::lock_guard lock(mutex_);
  return online_;
}

void Fleet::mark_changed(const std::vector<ClientId>& clients) {
  const std::lock_guard lock(mutex_);
  for (const ClientId client : clients)
    if (clients_.contains(client)) changed_.insert(client);
}

void Fleet::set_project(ClientId client, const std::string& project) {
  const std::lock_guard lock(mutex_);
  const auto found = clients_.find(client);
  if (found == clients_.end() || found->second.project == project) return;
  ClientActivity& activity = change(client);
  if (!activity.project.empty()) forget_tasks(activity);
  activity.project = project;
}

std::map<std::string, std::uint64_t> Fleet::outcomes() const {
  const std::lock_guard lock(mutex_);
  return outcomes_;
}

std::vector<std::pair<ClientId, std::uint64_t>> Fleet::failures() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::pair<ClientId, std::uint64_t>> list;
  for (const auto& [client, activity] : clients_) {
    std::uint64_t count = 0;
    for (const auto& [kind, tasks] : activity.failures) count += tasks;
    if (count > 0) list.emplace_back(client, count);
  }
  return list;
}

std::vector<ClientActivity> Fleet::take_changed(UnixSeconds now, bool all) {
  const std::lock_guard lock(mutex_);
  std::vector<ClientActivity> changed;
  const auto take = [&](ClientActivity& activity) {
    if (activity.online_since != 0) activity.last_seen = now;
    changed.push_back(activity);
  };
  if (all) {
    for (auto& [client, activity] : clients_)
      if (activity.online_since != 0 || changed_.contains(client)) take(activity);
  } else {
    for (const ClientId client : changed_) take(clients_[client]);
  }
  changed_.clear();
  return changed;
}

}  // namespace fedge::server
