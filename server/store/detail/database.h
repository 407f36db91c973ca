// A thin owner of SQLite's handles: statements that are finalised, errors that name the file and say what
// SQLite said. Private to store/. One thread at a time.
#pragma once

#include <sqlite3.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "core/platform/files.h"
#include "core/result.h"

namespace fedge::server {

class Database;

// A prepared statement. Bind from 1, step, read columns from 0.
class Statement {
 public:
  Statement(Statement&&) noexcept = default;
  Statement& operator=(Statement&&) noexcept = default;

  Statement& bind(int index, std::int64_t value);
  Statement& bind(int index, std::string_view text);
  Statement& bind_bytes(int index, std::string_view bytes);
  // True: there is a row to read. False: that was all.
  Result<bool> step();
  // One that gives no rows.
  Result<void> run();
  // Ends its reading: it may be bound and stepped again, and what its row held is gone.
  void reset() { sqlite3_reset(statement_.get()); }
  std::int64_t integer(int column) const;
  std::string text(int column) const;  // or bytes

 private:
  friend class Database;
  struct Finalise {
    void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
  };
  Statement(const Database& database, sqlite3_stmt* statement)
      : database_(&database), statement_(statement) {}

  const Database* database_;
  std::unique_ptr<sqlite3_stmt, Finalise> statement_;
  int bound_ = SQLITE_OK;
};

// What tells a file from another program's, and from a newer version's.
struct DatabaseKind {
  const char* name;  // "a database"
  std::int64_t application;
  std::int64_t version;  // the newest that is known
};

class Database {
 public:
  // Made if absent, readable for its owner alone. kRefused: the file belongs to another user, whom this
  // program would lock out with files of its own beside it.
  static Result<std::unique_ptr<Database>> open(const std::filesystem::path& path);
  // kNotFound if absent.
  static Result<std::unique_ptr<Database>> open_existing(const std::filesystem::path& path);

  // kUnavailable if the path names no file, or another than the open one: what is written then, nobody finds.
  Result<void> check_in_place() const;

  Result<void> execute(const char* sql) const;
  Result<Statement> prepare(const char* sql) const;
  // The first value of the answer; 0 if there is none.
  Result<std::int64_t> number(const char* sql) const;
  // kCorrupt if it is of another kind, kUnsupported if a newer version has made it.
  Result<void> check_kind(const DatabaseKind& kind) const;
  Result<void> set_kind(const DatabaseKind& kind) const;
  // What is damaged in the file; empty: nothing.
  Result<std::string> damage() const;
  // How long it waits for another connection's change to end; 10 s unless told otherwise.
  void wait_for_others(std::chrono::milliseconds most) const;
  // Whether the last call failed because another connection was changing the database.
  bool is_busy() const { return (sqlite3_errcode(handle_.get()) & 0xff) == SQLITE_BUSY; }
  std::int64_t last_row() const { return sqlite3_last_insert_rowid(handle_.get()); }
  Error error(int code) const;

 private:
  struct Close {
    void operator()(sqlite3* handle) const { sqlite3_close(handle); }
  };
  Database(std::filesystem::path path, FileIdentity identity, sqlite3* handle)
      : path_(std::move(path)), identity_(identity), handle_(handle) {}

  std::filesystem::path path_;
  FileIdentity identity_;
  std::unique_ptr<sqlite3, Close> handle_;
};

// Everything done while it lives is kept at commit(), or not at all.
class Transaction {
 public:
  // Waits for whoever is changing the database.
  static Result<Transaction> begin(const Database& database);
  Transaction(Transaction&& other) noexcept : database_(std::exchange(other.database_, nullptr)) {}
  Transaction& operator=(Transaction&&) = delete;
  ~Transaction();
  Result<void> commit();

 private:
  explicit Transaction(const Database& database) : database_(&database) {}
  const Database* database_;
};

}  // namespace fedge::server
