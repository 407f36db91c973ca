#include "server/store/run_evidence.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <string>

#include "server/audit_log.h"
#include "server/store/sqlite_store.h"

namespace fedge::server {
namespace {

std::int64_t run_number(const std::string& digits) {
  std::int64_t number = 0;
  const char* end = digits.data() + digits.size();
  return std::from_chars(digits.data(), end, number).ptr == end ? number : 0;
}

// Returns the run that an entry proves to have existed, or 0. Entries "run.*" name it in their details:
// their subject contains the run's name, which may be any text.
std::int64_t run_in(const AuditEvent& event) {
  if (event.action.starts_with("coordinator.") && event.subject.starts_with("run "))
    return run_number(event.subject.substr(4));
  if (event.action.starts_with("run."))
    for (const auto& [key, value] : event.details)
      if (key == "run") return run_number(value);
  return 0;
}

}  // namespace

Result<void> check_runs_kept(const std::filesystem::path& data_directory, RunNumber highest) {
  std::int64_t told = 0;
  bool submitted = false;
  // Ignores an invalid log, which is reported when the next entry is recorded.
  (void)AuditLog(data_directory).verify("", [&](const AuditEntry& entry) {
    told = std::max(told, run_in(entry.event));
    submitted = submitted || entry.event.action == "run.submitted";
  });
  const auto file = run_store_path(data_directory);
  std::error_code ignored;
  if (submitted && !std::filesystem::exists(file, ignored)) told = std::max<std::int64_t>(told, 1);
  if (told <= highest.value()) return {};
  return Error{
      ErrorCode::kUnavailable,
      file.string() +
          (highest.value() == 0 ? " has no runs" : " ends with run " + std::to_string(highest.value())) +
          ", but the audit log records run " + std::to_string(told) +
          "; the database was removed or replaced by an older copy. Restore the latest copy, or restore the "
          "data directory from a backup"};
}

}  // namespace fedge::server
