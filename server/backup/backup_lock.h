// Lets a backup and a coordinator know of each other. While a backup holds its lock, the coordinator
// keeps objects that it has removed, so that every object that a copied runs.db names can still be copied.
// A copy of a data directory has a mark until `fedge restore` has completed it: a coordinator refuses to
// start with it. Any thread.
#pragma once

#include <filesystem>
#include <memory>
#include <vector>

#include "core/platform/files.h"
#include "core/result.h"
#include "protocol/chunks/chunk_store.h"

namespace fedge::server {

// Held by a backup until destruction or the end of the process.
class BackupLock {
 public:
  // kUnavailable: another backup of this data directory is being made.
  static Result<BackupLock> acquire(const std::filesystem::path& data_directory);

 private:
  explicit BackupLock(std::unique_ptr<FileLock> lock) : lock_(std::move(lock)) {}
  std::unique_ptr<FileLock> lock_;
};

// Returns whether a backup holds its lock. Call it after the change that makes an object unnecessary is
// durable: a backup that begins later copies that change.
bool backup_is_running(const std::filesystem::path& data_directory);

// Removed objects whose files a backup may still need. One thread at a time.
class RemovedObjects {
 public:
  explicit RemovedObjects(std::filesystem::path data_directory) : directory_(std::move(data_directory)) {}
  // Releases these objects, or keeps them until a later call finds no backup. Null objects are ignored.
  void release(std::vector<std::shared_ptr<protocol::StoredObject>> objects);

 private:
  std::filesystem::path directory_;
  std::vector<std::shared_ptr<protocol::StoredObject>> kept_;
};

// Name of the mark in the data directory.
inline constexpr const char* kCopyMark = "restore.unfinished";
// Returns kRefused if the directory has the mark.
Result<void> check_restored(const std::filesystem::path& data_directory);

}  // namespace fedge::server
