// What the audit log tells of a data directory's runs, so that a database that is missing, or an older copy
// of it, is not taken for one that never had them.
#pragma once

#include <filesystem>

#include "core/result.h"
#include "server/store/run_store.h"

namespace fedge::server {

// kUnavailable: the audit log tells of a run that the database does not hold. `highest`: the number of its
// last run, 0 if it has none or is not there. Reads the whole log.
Result<void> check_runs_kept(const std::filesystem::path& data_directory, RunNumber highest);

}  // namespace fedge::server
