// LoggedBook opens the enrolment book when first needed, again when another file is at its path, and executes
// changes: each is in the audit log before it takes effect. Enrolment (clients and join tokens) and
// AccessControl (users and access tokens) share it. One thread at a time.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/result.h"
#include "server/audit_log.h"
#include "server/store/detail/enrolment_store.h"

namespace fedge::server {

class LoggedBook {
 public:
  explicit LoggedBook(std::filesystem::path data_directory)
      : directory_(std::move(data_directory)), audit_(directory_) {}

  // Opens the current rows for reading. kUnavailable: the book existed and is missing, or another book is at
  // its path.
  Result<BookRows> rows(std::chrono::milliseconds wait = EnrolmentStore::kWait);
  // Whether the last call failed because another process was writing.
  bool is_busy() const { return usable_ && store_->is_busy(); }
  // Executes one change. The event that `change` returns is recorded before the change takes effect. An
  // error, or no event, leaves the book unchanged. If the change fails after the recording, the log records
  // the failure.
  Result<void> update(const std::function<Result<std::optional<AuditEvent>>(BookRows&)>& change);
  // Executes a change that is not recorded; `change` returns whether to store it.
  Result<void> update_unrecorded(const std::function<Result<bool>(BookRows&)>& change);
  // Applies log entries that the book lacks, and returns them.
  Result<std::vector<AuditEntry>> catch_up();
  // Returns whether the file was opened since the last call.
  bool opened_anew() { return std::exchange(opened_anew_, false); }

  const std::filesystem::path& directory() const { return directory_; }

 private:
  Result<EnrolmentStore*> store();
  Result<EnrolmentStore*> find_store();

  std::filesystem::path directory_;
  AuditLog audit_;
  std::unique_ptr<EnrolmentStore> store_;
  bool usable_ = false;  // the last store() returned store_
  bool opened_anew_ = false;
  std::string identity_;  // of the first book opened
};

}  // namespace fedge::server
