// Checks a data directory's runs against the audit log, to detect a database that is missing or an older
// copy.
#pragma once

#include <filesystem>

#include "core/result.h"
#include "server/store/run_store.h"

namespace fedge::server {

// Returns kUnavailable if the audit log contains a run that the database lacks. `highest` is the database's
// last run number, 0 if it has none or is missing. Reads the whole log.
Result<void> check_runs_kept(const std::filesystem::path& data_directory, RunNumber highest);

}  // namespace fedge::server
