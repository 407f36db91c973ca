// The built-in RunStore: an SQLite database, runs.db in the data directory, with a write-ahead log that is
// synced at every commit. SQLite has no checksums, so every row has one here, and a journal's entries are
// chained: alterations are detected and reported.
#pragma once

#include <filesystem>
#include <memory>

#include "core/result.h"
#include "server/store/run_store.h"

namespace fedge::server {

// Returns the path of runs.db in the data directory.
std::filesystem::path run_store_path(const std::filesystem::path& data_directory);

// Opens the database; creates it if missing, and upgrades an older version's. kUnsupported: written by a
// newer version. kCorrupt: not such a database, or damaged.
Result<std::unique_ptr<RunStore>> open_sqlite_store(const std::filesystem::path& path);

}  // namespace fedge::server
