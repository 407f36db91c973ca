#include "apps/client_health.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <ctime>
#include <optional>
#include <utility>
#include <vector>

#include "apps/common.h"
#include "client/client_engine.h"
#include "client/diagnosis/doctor.h"
#include "client/diagnosis/status_file.h"
#include "client/membership.h"
#include "client/pending_update.h"
#include "client/task_files.h"
#include "core/detail/json.h"

namespace fedge::apps {
namespace {

using nlohmann::ordered_json;

std::string passed_since(std::int64_t then) {
  const std::int64_t passed = std::max<std::int64_t>(0, std::time(nullptr) - then);
  if (passed < 120) return std::to_string(passed) + " s";
  if (passed < 7200) return std::to_string(passed / 60) + " min";
  if (passed < 172'800) return std::to_string(passed / 3600) + " h";
  return std::to_string(passed / 86'400) + " days";
}

std::string ago(std::int64_t then) { return passed_since(then) + " ago"; }

std::string size_of(std::uint64_t bytes) {
  std::array<char, 32> text{};
  const double kilobytes = static_cast<double>(bytes) / 1024;
  if (kilobytes < 1024) {
    std::snprintf(text.data(), text.size(), "%.0f KB", kilobytes);
  } else {
    std::snprintf(text.data(), text.size(), "%.1f MB", kilobytes / 1024);
  }
  return text.data();
}

struct Found {
  client::Membership membership;
  PublicKey key;
  bool running = false;
  std::optional<client::DaemonStatus> daemon;
  std::vector<client::PendingUpdate> pending;
  std::uint64_t cache = 0;
};

using Rows = std::vector<std::pair<std::string, std::string>>;

std::string connection(const Found& found) {
  if (!found.running)
    return found.daemon ? "not running; last seen " + ago(found.daemon->written) : "not running";
  if (!found.daemon) return "running";
  const client::DaemonStatus& daemon = *found.daemon;
  const std::string lasting = " for " + passed_since(daemon.link_since);
  if (daemon.activity.link == "online") return "connected" + lasting;
  if (daemon.activity.link == "starting") return "starting";
  const std::string text = "not connected" + lasting;
  return daemon.link_reason.empty() ? text : text + ": " + daemon.link_reason;
}

std::string doing(const client::RunActivity& run) {
  const std::string name = run.name.empty() ? "(no description yet)" : run.name;
  if (run.work == client::kAwaitsStream)
    return name + ": waiting until its stream has a labelled segment for training";
  if (!run.task) return name + ": " + run.work + (run.reason.empty() ? "" : ": " + run.reason);
  std::string text = name + ": round " + std::to_string(run.task->round.value());
  if (run.task->track != TrackId()) text += ", track " + std::to_string(run.task->track.value());
  return text + ": " + (run.work == "offered" ? "trained, waiting for the coordinator's decision" : run.work);
}

std::string last_update(const client::DaemonStatus& daemon) {
  if (daemon.verdict.empty()) return "none yet";
  std::string text = daemon.verdict;
  if (daemon.verdict_round > 0) text = "round " + std::to_string(daemon.verdict_round) + " " + text;
  text += ", " + ago(daemon.verdict_at);
  return daemon.verdict_reason.empty() ? text : text + ": " + daemon.verdict_reason;
}

std::string reading(const client::StreamActivity& stream) {
  std::string text = stream.name + ": " + stream.state + " " + stream.source + "; " +
                     std::to_string(stream.kept) + " segments since the daemon started";
  if (stream.kept > 0) text += ", the last one " + ago(stream.kept_at);
  text += "; " + size_of(static_cast<std::uint64_t>(std::max<std::int64_t>(stream.bytes, 0))) + " on disk";
  return stream.fault.empty() ? text : text + "; " + ago(stream.fault_at) + ": " + stream.fault;
}

Rows table(const Found& found) {
  Rows rows = {{"client", std::to_string(found.membership.client.value())}, {"key", to_hex(found.key)}};
  for (const auto& address : found.membership.coordinators)
    rows.emplace_back("coordinator", protocol::to_string(address));
  rows.emplace_back("pinned key", to_hex(found.membership.coordinator_key));
  if (const auto& next = found.membership.next_key) rows.emplace_back("announced key", to_hex(*next));
  rows.emplace_back("daemon", connection(found));
  if (found.running && found.daemon) {
    const client::DaemonStatus& daemon = *found.daemon;
    for (const auto& run : daemon.activity.runs) rows.emplace_back("run", doing(run));
    if (daemon.activity.runs.empty()) rows.emplace_back("run", "none");
    for (const auto& stream : daemon.streams) rows.emplace_back("stream", reading(stream));
    rows.emplace_back("last update", last_update(daemon));
    rows.emplace_back("accepted", std::to_string(daemon.accepted) + " since the daemon started");
  }
  for (const auto& [request, offer] : found.pending)
    rows.emplace_back("pending", "the update of round " + std::to_string(offer.round.value()) + ", " +
                                     size_of(offer.update.payload_size));
  if (found.pending.empty()) rows.emplace_back("pending", "none");
  rows.emplace_back("cache", size_of(found.cache));
  return rows;
}

ordered_json document(const Found& found) {
  ordered_json json{{"client", found.membership.client.value()}, {"key", to_hex(found.key)}};
  json["coordinators"] = ordered_json::array();
  for (const auto& address : found.membership.coordinators)
    json["coordinators"].push_back(protocol::to_string(address));
  json["coordinator_key"] = to_hex(found.membership.coordinator_key);
  const auto& next = found.membership.next_key;
  json["coordinator_next_key"] = next ? ordered_json(to_hex(*next)) : ordered_json();
  json["running"] = found.running;
  json["cache_bytes"] = found.cache;
  json["pending_rounds"] = ordered_json::array();
  for (const auto& pending : found.pending) json["pending_rounds"].push_back(pending.offer.round.value());
  if (!found.daemon) return json;
  const client::DaemonStatus& daemon = *found.daemon;
  ordered_json said{
      {"connection", daemon.activity.link}, {"since", daemon.link_since}, {"reason", daemon.link_reason}};
  said["runs"] = ordered_json::array();
  for (const auto& run : daemon.activity.runs) {
    ordered_json part{{"name", run.name}, {"work", run.work}};
    if (run.task) {
      part["round"] = run.task->round.value();
      part["track"] = run.task->track.value();
    }
    if (!run.reason.empty()) part["reason"] = run.reason;
    said["runs"].push_back(part);
  }
  said["streams"] = ordered_json::array();
  for (const auto& stream : found.running ? daemon.streams : std::vector<client::StreamActivity>())
    said["streams"].push_back({{"name", stream.name},
                               {"state", stream.state},
                               {"source", stream.source},
                               {"segments_kept", stream.kept},
                               {"kept_at", stream.kept_at},
                               {"segment_bytes", stream.bytes},
                               {"fault", stream.fault},
                               {"fault_at", stream.fault_at}});
  said["last_update"] = {{"verdict", daemon.verdict},
                         {"round", daemon.verdict_round},
                         {"at", daemon.verdict_at},
                         {"reason", daemon.verdict_reason}};
  said["accepted"] = daemon.accepted;
  said["written"] = daemon.written;
  json["daemon"] = said;
  return json;
}

// json_text escapes invalid UTF-8: the file may contain any bytes.
std::string printed(const ordered_json& json) { return json_text(json, 1); }

const char* name_of(client::Health health) {
  constexpr std::array kNames = {"ok", "warning", "failed", "skipped"};
  return kNames.at(static_cast<std::size_t>(health));
}

void print(const client::Check& check) {
  constexpr std::array kMarks = {"ok  ", "warn", "FAIL", "skip"};
  constexpr std::array kColours = {"\x1b[32m", "\x1b[33m", "\x1b[31m", "\x1b[90m"};
  const auto health = static_cast<std::size_t>(check.health);
  const bool colour = ::isatty(STDOUT_FILENO) != 0;
  std::printf("%s%s%s  %-15s  %s\n", colour ? kColours.at(health) : "", kMarks.at(health),
              colour ? "\x1b[0m" : "", check.name.c_str(), check.detail.c_str());
}

}  // namespace

int client_status(const std::string& program, const HealthOptions& options) {
  const auto membership = client::read_membership(options.state_directory, program);
  if (!membership) return report_failure(program, membership.error());
  const auto key = client::open_node_key(options.state_directory);
  if (!key) return report_failure(program, key.error());
  Found found{.membership = *membership, .key = key->public_key()};
  found.running = client::daemon_runs(options.state_directory);
  if (const auto daemon = client::read_status(options.state_directory)) found.daemon = *daemon;
  for (const auto& file : client::pending_updates(options.state_directory)) {
    if (found.pending.size() == client::kMaxRuns) break;
    if (const auto pending = client::read_pending_update(file)) found.pending.push_back(*pending);
  }
  found.cache = client::chunk_cache_use(options.state_directory);
  if (options.json) {
    std::printf("%s\n", printed(document(found)).c_str());
    return kOk;
  }
  for (const auto& [name, value] : table(found)) std::printf("%-12s  %s\n", name.c_str(), value.c_str());
  return kOk;
}

int client_doctor(const std::string& program, const HealthOptions& options) {
  const auto checks = client::examine({.state_directory = options.state_directory,
                                       .software = software(program),
                                       .program = program,
                                       .cache_bytes = options.cache_bytes});
  const bool healthy = client::healthy(checks);
  if (options.json) {
    ordered_json json{{"healthy", healthy}, {"checks", ordered_json::array()}};
    for (const auto& check : checks)
      json["checks"].push_back(
          {{"name", check.name}, {"result", name_of(check.health)}, {"detail", check.detail}});
    std::printf("%s\n", printed(json).c_str());
    return healthy ? kOk : kFailed;
  }
  for (const auto& check : checks) print(check);
  const bool rejects = std::ranges::any_of(
      checks, [](const client::Check& check) { return check.name == client::kRejectedRun; });
  std::printf("\n%s\n", !healthy  ? "This client cannot take part; correct what is marked FAIL above."
                        : rejects ? "This client can take part in runs, but it has rejected those above."
                                  : "This client can take part.");
  return healthy ? kOk : kFailed;
}

}  // namespace fedge::apps
