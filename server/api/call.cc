#include <algorithm>
#include <charconv>
#include <filesystem>
#include <utility>

#include "core/platform/files.h"
#include "core/text.h"
#include "server/api/detail/call.h"
#include "server/live/fleet_file.h"
#include "server/live/live.h"
#include "server/store/run_evidence.h"
#include "server/store/sqlite_store.h"

namespace fedge::server {
namespace {

std::optional<std::uint64_t> parse_number(const std::string& text) {
  std::uint64_t number = 0;
  const char* end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, number);
  if (parsed.ec != std::errc() || parsed.ptr != end) return std::nullopt;
  return number;
}

}  // namespace

Result<RunStore*> ApiStores::runs(bool create) {
  const std::filesystem::path path = run_store_path(parts_.data_directory);
  std::error_code unreadable;
  const bool exists = std::filesystem::exists(path, unreadable);
  if (unreadable) return system_error("cannot open", path, unreadable.value());
  if (!exists) {
    runs_.reset();
    FEDGE_TRY_VOID(check_runs_kept(parts_.data_directory, RunNumber(0)));
    if (!create)
      return Error{ErrorCode::kNotFound, "there are no runs in " + parts_.data_directory.string() + ": " +
                                             path.string() +
                                             " does not exist; is this the coordinator's data directory?"};
  }
  // Another file at the path, as after a restored backup, is opened anew.
  if (runs_ && !runs_->foreign_changes()) runs_.reset();
  if (!runs_) {
    FEDGE_TRY(opened, open_sqlite_store(path));
    runs_ = std::move(opened);
  }
  return runs_.get();
}

Result<std::optional<ClientActivity>> ApiStores::activity(ClientId client) {
  if (parts_.live) return parts_.live->fleet.find(client, calendar_now());
  if (!fleet_) {
    FEDGE_TRY(kept, FleetFile::read(parts_.data_directory));
    fleet_.emplace();
    for (ClientActivity& activity : kept) fleet_->emplace(activity.client, std::move(activity));
  }
  const auto found = fleet_->find(client);
  return found == fleet_->end() ? std::nullopt : std::optional(found->second);
}

Result<RunRecord> Call::find_run(RunStore& store, Role role) const {
  FEDGE_TRY(number, this->number("run"));
  const RunNumber run(static_cast<std::int64_t>(std::min<std::uint64_t>(number, INT64_MAX)));
  auto record = store.run(run);
  const Error missing{ErrorCode::kNotFound,
                      "there is no run " + std::to_string(number) + "; list runs with: fedge run ls"};
  if (!record) return record.error().code == ErrorCode::kNotFound ? missing : record.error();
  FEDGE_TRY_VOID(require(role, record->project, missing));
  return record;
}

Result<std::uint64_t> Call::number(const std::string& name) const {
  const std::string& text = path.at(name);
  if (const auto number = parse_number(text)) return *number;
  return Error{ErrorCode::kNotFound, "there is no " + name + " '" + clean_text(text, 80) + "'"};
}

Result<std::uint64_t> Call::query_number(const std::string& name, std::uint64_t fallback, std::uint64_t most,
                                         std::uint64_t least) const {
  const auto given = query.find(name);
  if (given == query.end()) return fallback;
  const auto number = parse_number(given->second);
  if (number && *number >= least && *number <= most) return *number;
  return invalid("the parameter " + name + " must be an integer from " + std::to_string(least) + " to " +
                 std::to_string(most) + ", not '" + clean_text(given->second, 80) + "'");
}

std::string Call::query_text(const std::string& name) const {
  const auto given = query.find(name);
  return given == query.end() ? std::string() : given->second;
}

std::string Call::text(const char* field, const std::string& fallback) const {
  return has(field) ? body[field].get<std::string>() : fallback;
}

Result<void> Call::require(Role role, const std::string& project, const Error& missing) const {
  if (!sees(project)) return missing;
  return require_project(role, project);
}

Result<void> Call::require_project(Role role, const std::string& project) const {
  if (request.principal.may(role, project)) return {};
  forbidden = true;
  return Error{ErrorCode::kRefused, actor().name + " needs the role " + name_of(role) + " in the project '" +
                                        clean_text(project, 80) + "' for this"};
}

Reply page_of(Json items, std::optional<std::uint64_t> next) {
  Json page;
  page["items"] = std::move(items);
  page["next"] = next ? Json(*next) : Json();
  return {200, std::move(page)};
}

Json time_or_null(UnixSeconds time) { return time == 0 ? Json() : Json(calendar_text(time)); }

Json number_or_null(const std::optional<ClientId>& client) { return client ? Json(client->value()) : Json(); }

}  // namespace fedge::server
