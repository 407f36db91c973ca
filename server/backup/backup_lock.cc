#include "server/backup/backup_lock.h"

#include <cerrno>
#include <chrono>
#include <iterator>
#include <stop_token>
#include <utility>

namespace fedge::server {
namespace {

constexpr const char* kBackupLock = "backup.lock";
// A coordinator holds the lock for a moment when it looks whether a backup does.
constexpr std::chrono::milliseconds kPatience{1000};

}  // namespace

Result<BackupLock> BackupLock::acquire(const std::filesystem::path& data_directory) {
  const std::filesystem::path file = data_directory / kBackupLock;
  auto lock = std::make_unique<FileLock>(file, kPatience, std::stop_token());
  if (lock->held()) return BackupLock(std::move(lock));
  if (errno != EWOULDBLOCK) return system_error("cannot lock", file, errno);
  return Error{ErrorCode::kUnavailable,
               "another backup of " + data_directory.string() + " is being made; wait until it has ended"};
}

bool backup_is_running(const std::filesystem::path& data_directory) {
  const std::filesystem::path file = data_directory / kBackupLock;
  if (!identity_of(file)) return false;  // no backup was ever made
  const FileLock lock(file, std::chrono::milliseconds(0), std::stop_token());
  return !lock.held() && errno == EWOULDBLOCK;
}

void RemovedObjects::release(std::vector<std::shared_ptr<protocol::StoredObject>> objects) {
  std::erase(objects, nullptr);
  kept_.insert(kept_.end(), std::make_move_iterator(objects.begin()), std::make_move_iterator(objects.end()));
  if (!backup_is_running(directory_)) kept_.clear();
}

Result<void> check_restored(const std::filesystem::path& data_directory) {
  const std::filesystem::path mark = data_directory / kCopyMark;
  if (!identity_of(mark)) return {};
  return Error{ErrorCode::kRefused,
               data_directory.string() + " is a part of a backup, or a restore that did not end (" +
                   mark.string() + "); use 'fedge restore BACKUP --data-dir DIR' with an empty directory"};
}

}  // namespace fedge::server
