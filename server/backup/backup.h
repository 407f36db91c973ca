// Backups of a coordinator's data directory, made while the coordinator runs. A backup is a directory with
// manifest.json and the files below data/. Databases are copied by SQLite and show one moment: enrolments,
// runs, tracks and audit log fit together. Every object that a copied checkpoint or journal needs is in it.
// A backup contains the coordinator's private keys, so only its owner can read it. Any thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "core/result.h"
#include "server/backup/backup_manifest.h"

namespace fedge::server {

using BackupProgress = std::function<void(const std::string&)>;

struct BackupOrder {
  std::filesystem::path data_directory;
  std::filesystem::path out;  // must not exist
  std::string version;        // of this program
  BackupProgress progress = {};
};

struct BackupSummary {
  BackupManifest manifest;
  std::string hash;                     // of manifest.json
  std::uint64_t bytes = 0;              // of the files
  std::vector<std::string> notes = {};  // what is not in the backup, one sentence each
};

// Makes a backup, verifies it, and gives it its name last: after an error or a crash nothing has that name.
// kRefused: the name is taken, or the directory belongs to another user. kUnavailable: another backup is
// being made, or a file of the directory is missing or damaged. kResource: the disk is full.
Result<BackupSummary> make_backup(const BackupOrder& order);

// Compares each file with the manifest. kCorrupt names the files that are damaged, missing or surplus.
// kUnsupported: a newer version made the backup. kNotFound: it is not a backup.
Result<BackupSummary> verify_backup(const std::filesystem::path& backup, const std::string& version,
                                    const BackupProgress& progress = {});

}  // namespace fedge::server
