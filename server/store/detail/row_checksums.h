// Checksums of database rows, because SQLite has none. Private to store/.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "server/store/run_store.h"

namespace fedge::server {

std::string checksum_of(const RunRecord& run);
// Checksum of a checkpoint's state or a round's metrics.
std::string checksum_of(RunNumber run, std::int64_t rounds, std::string_view bytes);
// Returns the journal's chained checksum after this entry, given the one before it.
std::string chain(const std::string& before, RunNumber run, const JournalEntry& entry);

}  // namespace fedge::server
