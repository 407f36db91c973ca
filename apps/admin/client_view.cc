#include "apps/admin/client_view.h"

#include <algorithm>
#include <cstdio>
#include <optional>

#include "apps/admin/cells.h"
#include "apps/commands/listing.h"
#include "core/detail/json.h"
#include "server/access/calendar.h"

namespace fedge::apps {
namespace {

std::string seconds_text(const Json& seconds) {
  if (!seconds.is_number()) return "";
  char text[32];
  std::snprintf(text, sizeof text, "%.1f s", seconds.get<double>());
  return text;
}

// A time before the coordinator's last restart is not known.
std::string when(const Json& time) {
  return time.is_string() ? ago(time.get<std::string>()) : "before a restart";
}

std::string seen(const Json& client) {
  if (client["online"].get<bool>()) return "online";
  return client["last_seen"].is_null() ? "never" : ago(client["last_seen"].get<std::string>());
}

std::string counts_text(const Json& counts) {
  std::string text;
  for (const auto& [kind, count] : counts.items())
    text += (text.empty() ? "" : ", ") + std::to_string(count.get<std::uint64_t>()) + " " + kind;
  return text;
}

std::string place(const Json& task) {
  return "run " + std::to_string(task["run"].get<std::int64_t>()) + ", round " +
         std::to_string(task["round"].get<std::uint64_t>());
}

std::string last_task(const Json& task) {
  if (task.is_null()) return "";
  std::string text = task["outcome"].get<std::string>() + " " + ago(task["ended"].get<std::string>()) + " (" +
                     place(task) + ")";
  if (task["training_seconds"].get<double>() > 0)
    text += ", trained in " + seconds_text(task["training_seconds"]) + ", sent " +
            size_text(task["bytes"].get<std::uint64_t>()) + " in " + seconds_text(task["upload_seconds"]);
  return text;
}

std::string last_failure(const Json& failure) {
  if (failure.is_null()) return "";
  return failure["kind"].get<std::string>() + " " + ago(failure["at"].get<std::string>()) + " (" +
         place(failure) + "): " + failure["reason"].get<std::string>();
}

std::string runs_text(const Json& runs) {
  std::string text;
  for (const Json& run : runs) {
    text += (text.empty() ? "" : "; ") + std::to_string(run["run"].get<std::int64_t>()) + " " +
            run["state"].get<std::string>();
    if (run["reason"].is_string()) text += ": " + run["reason"].get<std::string>();
  }
  return text;
}

// Rounded down, so that 100 is the end.
std::uint64_t percent_of(std::uint64_t done, std::uint64_t bytes) {
  return bytes == 0
             ? 100
             : static_cast<std::uint64_t>(100.0 * static_cast<double>(done) / static_cast<double>(bytes));
}

// "28.0 MB", and how much of an update that is being uploaded has arrived.
Listing::Cell size_of(const Json& task) {
  if (task["bytes"].is_null()) return {};
  const auto bytes = task["bytes"].get<std::uint64_t>();
  // A coordinator of an older version does not report it.
  if (!task.contains("received_bytes") || task["received_bytes"].is_null()) return size_text(bytes);
  return size_text(bytes) + " (" +
         std::to_string(percent_of(task["received_bytes"].get<std::uint64_t>(), bytes)) + " %)";
}

void add_tasks(Listing& list, const Json& tasks) {
  for (const Json& task : tasks)
    list.add({cell_of(task["round"]), cell_of(task["client"]), cell_of(task["kind"]), cell_of(task["stage"]),
              when(task["asked"]), seconds_text(task["training_seconds"]),
              seconds_text(task["upload_seconds"]), size_of(task), cell_of(task["reason"])});
}

}  // namespace

std::string ago(const std::string& time) {
  const auto when = server::parse_calendar_text(time);
  if (!when) return time;
  const auto seconds = std::max<server::UnixSeconds>(0, server::calendar_now() - *when);
  if (seconds < 2) return "now";
  if (seconds < 120) return std::to_string(seconds) + " s ago";
  if (seconds < 7200) return std::to_string(seconds / 60) + " min ago";
  if (seconds < 172'800) return std::to_string(seconds / 3600) + " h ago";
  return std::to_string(seconds / 86'400) + " days ago";
}

std::string size_text(std::uint64_t bytes) {
  constexpr const char* kUnits[] = {"B", "KB", "MB", "GB", "TB"};
  double value = static_cast<double>(bytes);
  std::size_t unit = 0;
  for (; value >= 1000 && unit < 4; ++unit) value /= 1000;
  char text[32];
  std::snprintf(text, sizeof text, unit == 0 ? "%.0f %s" : "%.1f %s", value, kUnits[unit]);
  return text;
}

std::string clients_table(const Json& clients) {
  Listing list({"client", "state", "name", "labels", "project", "seen", "software", "accepted", "failures"});
  for (const Json& client : clients) {
    auto cells = cells_of(client, {"client", "state", "name", "labels", "project"});
    cells.emplace_back(seen(client));
    cells.push_back(cell_of(client["software"]));
    cells.push_back(cell_of(client["accepted"]));
    cells.emplace_back(counts_text(client["failures"]));
    list.add(std::move(cells));
  }
  return list.table();
}

std::string client_lines(const Json& client) {
  const std::vector<std::string> plain = {"client",  "state",    "name",  "labels",
                                          "project", "enrolled", "token", "key"};
  std::vector<std::string> columns = plain;
  columns.insert(columns.end(), {"seen", "address", "software", "platform", "runs", "accepted", "failures",
                                 "received", "sent", "last task", "last failure"});
  auto cells = cells_of(client, plain);
  cells.emplace_back(client["online"].get<bool>()
                         ? "online since " + client["online_since"].get<std::string>()
                         : seen(client));
  for (const char* field : {"address", "software", "platform"}) cells.push_back(cell_of(client[field]));
  cells.emplace_back(runs_text(client["runs"]));
  cells.push_back(cell_of(client["accepted"]));
  cells.emplace_back(counts_text(client["failures"]));
  for (const char* field : {"received", "sent"})
    cells.emplace_back(size_text(client[field].get<std::uint64_t>()));
  cells.emplace_back(last_task(client["last_task"]));
  cells.emplace_back(last_failure(client["last_failure"]));
  Listing list(std::move(columns));
  list.add(std::move(cells));
  return list.lines();
}

std::string transfers_table(const Json& transfers) {
  Listing list(
      {"client", "run", "round", "direction", "object", "done", "percent", "speed", "state", "since"});
  for (const Json& transfer : transfers) {
    auto cells = cells_of(transfer, {"client", "run", "round", "direction", "object"});
    const auto bytes = transfer["bytes"].get<std::uint64_t>();
    const auto done = transfer["done"].get<std::uint64_t>();
    const Json& rate = transfer["bytes_per_second"];
    const std::string waits_for = text_of(transfer["waits_for"]);
    cells.emplace_back(size_text(done) + " of " + size_text(bytes));
    cells.emplace_back(static_cast<std::int64_t>(percent_of(done, bytes)));
    cells.emplace_back(rate.is_null() ? Listing::Cell()
                                      : Listing::Cell(size_text(rate.get<std::uint64_t>()) + "/s"));
    cells.emplace_back(waits_for.empty()
                           ? "moves"
                           : "waits for " + std::string(waits_for == "turn" ? "its turn" : "the disk"));
    cells.emplace_back(ago(transfer["since"].get<std::string>()));
    list.add(std::move(cells));
  }
  return list.table();
}

std::string progress_text(const Json& progress) {
  if (!progress["led"].get<bool>()) return "no coordinator executes this run at present\n";
  std::string text = std::to_string(progress["ready"].get<std::uint64_t>()) +
                     (progress["ready"] == 1 ? " client is ready, " : " clients are ready, ") +
                     std::to_string(progress["preparing"].get<std::uint64_t>()) + " prepare, " +
                     std::to_string(progress["declined"].size()) + " declined\n";
  if (const Json& waiting = progress["waiting"]; !waiting.is_null())
    text += "round " + std::to_string(waiting["round"].get<std::uint64_t>()) +
            " waits for clients: it needs " + std::to_string(waiting["needed"].get<std::uint64_t>()) +
            ", and " + std::to_string(waiting["ready"].get<std::uint64_t>()) +
            (waiting["ready"] == 1 ? " is" : " are") + " ready (since " +
            waiting["since"].get<std::string>() + ")\n";
  for (const Json& one : progress["declined"])
    text += "client " + std::to_string(one["client"].get<std::uint64_t>()) + " declined " +
            when(one["since"]) + ": " + text_of(one["reason"]) + "\n";
  for (const Json& one : progress["quarantined"])
    text += "client " + std::to_string(one["client"].get<std::uint64_t>()) +
            " is in quarantine since round " + std::to_string(one["round"].get<std::uint64_t>()) +
            ": its last " + std::to_string(one["failures"].get<std::uint64_t>()) + " trainings failed\n";
  if (const Json& secure = progress["secure"]; !secure.is_null()) {
    text += "secure sum: stage " + secure["stage"].get<std::string>();
    std::string awaited;
    for (const Json& one : secure["awaited"]) awaited += (awaited.empty() ? "" : ", ") + json_text(one);
    text += (awaited.empty() ? "" : ", waits for clients " + awaited) + "\n";
  }
  Listing list({"round", "client", "task", "stage", "asked", "training", "upload", "size", "reason"});
  add_tasks(list, progress["last_tasks"]);
  add_tasks(list, progress["tasks"]);
  if (progress["last_tasks"].empty() && progress["tasks"].empty()) return text;
  return text + "\n" + list.table();
}

}  // namespace fedge::apps
