// The databases, tracks and audit log of a data directory at one moment. Private to backup/.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "core/result.h"
#include "server/audit_log.h"

namespace fedge::server {

struct Snapshot {
  AuditLog::Mark audit;
  std::map<std::string, std::string> policies;  // content of policy.toml, by its path in the data directory
};

// Copies enrolment.db and runs.db to the directory `to`. Other processes wait while the moment is fixed, and
// while enrolment.db, which is small, is copied. kUnavailable: a database is missing.
Result<Snapshot> take_snapshot(const std::filesystem::path& data_directory, const std::filesystem::path& to);

}  // namespace fedge::server
