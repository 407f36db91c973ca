// Reads the first run from a coordinator's database after the coordinator has ended.
#pragma once

#include <doctest/doctest.h>
#include <sqlite3.h>

#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <variant>

#include "server/store/input_codec.h"
#include "server/store/sqlite_store.h"
#include "tests/support/tiny_dataset.h"

namespace fedge::test {

// Returns whether the run has ended; false without a database. Works on a copy: the recovery of the database
// is left to the next coordinator.
inline bool run_has_ended(const std::filesystem::path& data_directory) {
  const TemporaryDirectory copy;
  for (const char* file : {"runs.db", "runs.db-wal"})
    if (std::filesystem::exists(data_directory / file))
      std::filesystem::copy_file(data_directory / file, copy.path() / file);
  if (!std::filesystem::exists(server::run_store_path(copy.path()))) return false;
  const auto store = server::open_sqlite_store(server::run_store_path(copy.path()));
  if (!store) return false;
  const auto run = (*store)->run(server::RunNumber(1));
  return run && server::has_ended(run->status);
}

// Returns how often the journal contains each client's update of each round, without updates recorded as
// lost. An upload that completed after its client had left is in the journal but does not count. Checks the
// journal's chain.
inline std::map<std::pair<std::size_t, std::uint64_t>, std::size_t> stored_updates(
    const std::filesystem::path& data_directory) {
  using Engine = server::RunEngine;
  const auto store = server::open_sqlite_store(server::run_store_path(data_directory));
  REQUIRE_MESSAGE(store, store.error().message);
  std::map<std::uint64_t, std::pair<std::size_t, std::uint64_t>> entries;
  std::set<ClientId> offering;
  const auto take = [&](const server::JournalEntry& entry) -> Result<void> {
    FEDGE_TRY(record, server::decode_record(entry.input));
    if (const auto* lost = std::get_if<server::LostUpdate>(&record)) {
      entries.erase(lost->sequence);
      return {};
    }
    if (!std::holds_alternative<Engine::Input>(record)) return {};
    const auto& input = std::get<Engine::Input>(record);
    if (const auto* offered = std::get_if<Engine::Offered>(&input)) offering.insert(offered->client);
    if (const auto* left = std::get_if<Engine::ClientLeft>(&input)) offering.erase(left->client);
    if (std::holds_alternative<Engine::Restarted>(input)) offering.clear();
    if (const auto* stored = std::get_if<Engine::Stored>(&input);
        stored && offering.erase(stored->client) > 0)
      entries[entry.sequence] = {stored->client.value(), stored->task.round.value()};
    return {};
  };
  const auto read = (*store)->read_journal(server::RunNumber(1), take);
  REQUIRE_MESSAGE(read, read.error().message);
  std::map<std::pair<std::size_t, std::uint64_t>, std::size_t> counts;
  for (const auto& [sequence, of] : entries) ++counts[of];
  return counts;
}

// Returns "ok" or the faults that SQLite finds.
inline std::string integrity_of(const std::filesystem::path& data_directory) {
  sqlite3* handle = nullptr;
  REQUIRE(sqlite3_open_v2(server::run_store_path(data_directory).c_str(), &handle, SQLITE_OPEN_READWRITE,
                          nullptr) == 0);
  std::string verdict;
  const auto hear = [](void* to, int, char** values, char**) {
    *static_cast<std::string*>(to) += values[0];
    return 0;
  };
  CHECK(sqlite3_exec(handle, "PRAGMA integrity_check", hear, &verdict, nullptr) == 0);
  sqlite3_close(handle);
  return verdict;
}

}  // namespace fedge::test
