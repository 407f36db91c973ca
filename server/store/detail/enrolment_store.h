// EnrolmentStore: the file of the enrolment book, enrolment.db in the data directory, an SQLite database.
// open() creates it once, from an older version's enrolment.json if there is one. If the audit log shows
// that a book existed but it is missing, open() fails with kUnavailable instead of creating an empty one.
// Between changes the file is the whole book: there is no write-ahead log that a moved, restored or
// replaced file would lack. The command-line tool and a running coordinator may use it at the same time.
// One thread at a time. A change costs the syncs of one commit, whatever the book's size. Private to
// Enrolment.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>

#include "core/result.h"
#include "server/store/detail/book_rows.h"
#include "server/store/detail/database.h"

namespace fedge::server {

class EnrolmentStore {
 public:
  static constexpr std::chrono::milliseconds kWait{10'000};

  // kUnavailable: the book existed and is missing. kCorrupt: not a book, or damaged. kRefused: the data
  // directory's files belong to another user. kUnsupported: written by a newer version.
  static Result<std::unique_ptr<EnrolmentStore>> open(const std::filesystem::path& data_directory);

  // kUnavailable: the open file is no longer at its path.
  Result<void> check_in_place() const { return database_->check_in_place(); }
  // Opens the current rows for reading. Waits at most `wait` for another change, then fails with is_busy().
  Result<BookRows> rows(std::chrono::milliseconds wait = kWait) const;
  bool is_busy() const { return database_->is_busy(); }
  // Executes one change, durably and atomically. `change` returns whether to store it.
  Result<void> update(const std::function<Result<bool>(BookRows&)>& change) const;

 private:
  EnrolmentStore(std::filesystem::path path, std::unique_ptr<Database> database)
      : path_(std::move(path)), database_(std::move(database)) {}
  Result<void> prepare() const;
  Result<void> upgrade() const;

  std::filesystem::path path_;
  std::unique_ptr<Database> database_;
};

}  // namespace fedge::server
