// The tables of runs.db, by the steps in which they came about. Private to store/.
#pragma once

#include <array>

#include "server/store/detail/database.h"

namespace fedge::server {

// Migration i brings a database from version i to i + 1. A released migration must not change.
inline constexpr std::array kMigrations = {
    R"(CREATE TABLE runs (
         number INTEGER PRIMARY KEY AUTOINCREMENT, id INTEGER NOT NULL, name TEXT NOT NULL,
         document TEXT NOT NULL, status INTEGER NOT NULL, reason TEXT NOT NULL, submitted INTEGER NOT NULL,
         started INTEGER NOT NULL, ended INTEGER NOT NULL, checksum BLOB NOT NULL);
       CREATE TABLE journal (
         run INTEGER NOT NULL, sequence INTEGER NOT NULL, time INTEGER NOT NULL, input BLOB NOT NULL,
         chain BLOB NOT NULL, PRIMARY KEY (run, sequence)) WITHOUT ROWID;
       CREATE TABLE checkpoints (
         run INTEGER PRIMARY KEY, rounds INTEGER NOT NULL, state BLOB NOT NULL, checksum BLOB NOT NULL);
       CREATE TABLE rounds (
         run INTEGER NOT NULL, round INTEGER NOT NULL, metrics TEXT NOT NULL, checksum BLOB NOT NULL,
         PRIMARY KEY (run, round)) WITHOUT ROWID;)",
    R"(ALTER TABLE runs ADD COLUMN project TEXT NOT NULL DEFAULT 'default';
       ALTER TABLE runs ADD COLUMN submitter TEXT NOT NULL DEFAULT '';
       CREATE INDEX runs_by_id ON runs (id);)",
    "CREATE TABLE removed_runs (id INTEGER PRIMARY KEY, number INTEGER NOT NULL);",
};
// "FDGE"
inline constexpr DatabaseKind kRunsFile{"a database", 1178879813, kMigrations.size()};

}  // namespace fedge::server
