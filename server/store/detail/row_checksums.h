// Checksums of the database's rows, which SQLite has none of. Private to store/.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "server/store/run_store.h"

namespace fedge::server {

std::string checksum_of(const RunRecord& run);
// Of what a run has come to with so many rounds.
std::string checksum_of(RunNumber run, std::int64_t rounds, std::string_view bytes);
// A journal's checksum with this entry after the one before.
std::string chain(const std::string& before, RunNumber run, const JournalEntry& entry);

}  // namespace fedge::server
