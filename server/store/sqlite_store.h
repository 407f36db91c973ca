// The built-in RunStore: an SQLite database, runs.db of the data directory, with a write-ahead log that is
// synced at every commit. SQLite has no checksums of its own: every row has one here, and a journal's entries
// are chained, so that what the disk has changed is found and named rather than used.
#pragma once

#include <filesystem>
#include <memory>

#include "core/result.h"
#include "server/store/run_store.h"

namespace fedge::server {

// Where it lies.
std::filesystem::path run_store_path(const std::filesystem::path& data_directory);

// Made if absent, brought up to date if an older version made it. kUnsupported: by a newer one. kCorrupt: not
// such a database, or damaged.
Result<std::unique_ptr<RunStore>> open_sqlite_store(const std::filesystem::path& path);

}  // namespace fedge::server
