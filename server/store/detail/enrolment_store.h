// EnrolmentStore: the enrolment book's file, enrolment.db of the data directory, an SQLite database beside
// the runs'. It makes the file once, from an older version's enrolment.json if there is one, and never again:
// a book that the audit log tells of and that is missing is kUnavailable, not empty. Between two changes the
// file is the whole book: no write-ahead log is beside it that a file which is moved away, put back or
// replaced would be without. The command-line tool and a running coordinator may use it at the same time. One
// thread at a time; a change costs the syncs of one commit, whatever the book's size. Private to Enrolment.
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

  // kUnavailable: the book existed and is away. kCorrupt: it is no such book, or damaged. kRefused: the data
  // directory's files belong to another user. kUnsupported: a newer version has made it.
  static Result<std::unique_ptr<EnrolmentStore>> open(const std::filesystem::path& data_directory);

  // kUnavailable: the file that is open is no longer at its path.
  Result<void> check_in_place() const { return database_->check_in_place(); }
  // As it is now, to be read from. Waits so long for a change that is being written; then is_busy().
  Result<BookRows> rows(std::chrono::milliseconds wait = kWait) const;
  bool is_busy() const { return database_->is_busy(); }
  // One change, durable or undone as a whole. `change` says whether there is something to keep.
  Result<void> update(const std::function<Result<bool>(BookRows&)>& change) const;

 private:
  EnrolmentStore(std::filesystem::path path, std::unique_ptr<Database> database)
      : path_(std::move(path)), database_(std::move(database)) {}
  Result<void> prepare() const;

  std::filesystem::path path_;
  std::unique_ptr<Database> database_;
};

}  // namespace fedge::server
