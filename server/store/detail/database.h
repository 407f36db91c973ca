// RAII wrappers for SQLite: statements, transactions, and errors that name the file and contain SQLite's
// message. Private to store/, backup/ and FleetFile. One thread at a time.
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

// A prepared statement. Bind parameters from 1, then step, then read columns from 0.
class Statement {
 public:
  Statement(Statement&&) noexcept = default;
  Statement& operator=(Statement&&) noexcept = default;

  Statement& bind(int index, std::int64_t value);
  Statement& bind(int index, std::string_view text);
  Statement& bind_bytes(int index, std::string_view bytes);
  // Returns true if there is a row to read, false at the end.
  Result<bool> step();
  // Runs a statement that returns no rows.
  Result<void> run();
  // Resets the statement for new bindings; the current row becomes invalid.
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

// Identifies a database file, to detect other programs' files and newer versions.
struct DatabaseKind {
  const char* name;  // "a database"
  std::int64_t application;
  std::int64_t version;  // newest supported version
};

class Database {
 public:
  // Opens the file; creates it if missing, readable only by its owner. kRefused: it belongs to another
  // user, whom this program's companion files would lock out.
  static Result<std::unique_ptr<Database>> open(const std::filesystem::path& path);
  // Opens an existing file; kNotFound if it is missing.
  static Result<std::unique_ptr<Database>> open_existing(const std::filesystem::path& path);

  // Returns kUnavailable if the path no longer names the open file: later writes would be lost.
  Result<void> check_in_place() const;

  Result<void> execute(const char* sql) const;
  Result<Statement> prepare(const char* sql) const;
  // Returns the first value of the result, or 0 if it is empty.
  Result<std::int64_t> number(const char* sql) const;
  // Returns kCorrupt for another kind of database, kUnsupported for a newer version's.
  Result<void> check_kind(const DatabaseKind& kind) const;
  Result<void> set_kind(const DatabaseKind& kind) const;
  // Returns a description of the file's damage, empty if there is none.
  Result<std::string> damage() const;
  // Copies the database to a new file, while others use it. Within a transaction that reads: as the database
  // was when the transaction began. The copy is one file, without a write-ahead log.
  Result<void> copy_to(const std::filesystem::path& path) const;
  // Sets how long calls wait for another connection's change; default 10 s.
  void wait_for_others(std::chrono::milliseconds most) const;
  // Returns whether the last call failed because another connection was writing.
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

// A transaction: its changes are stored by commit(), or none of them.
class Transaction {
 public:
  // Waits while another connection is writing.
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
