#include "server/store/detail/database.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <utility>

#include "core/platform/files.h"

namespace fedge::server {
namespace {

constexpr std::chrono::milliseconds kWaitForOthers{10'000};

}  // namespace

Error Database::error(int code) const {
  const int extended = sqlite3_extended_errcode(handle_.get());
  ErrorCode kind = ErrorCode::kUnavailable;
  const int primary = code & 0xff;
  if (primary == SQLITE_FULL || extended == SQLITE_IOERR_SHMSIZE || primary == SQLITE_NOMEM)
    kind = ErrorCode::kResource;
  if (primary == SQLITE_CORRUPT || primary == SQLITE_NOTADB) kind = ErrorCode::kCorrupt;
  if (primary == SQLITE_PERM || primary == SQLITE_READONLY) kind = ErrorCode::kRefused;
  std::string text = "database " + path_.string() + ": " + sqlite3_errmsg(handle_.get());
  if (primary == SQLITE_IOERR)
    if (const int number = sqlite3_system_errno(handle_.get()); number != 0)
      return system_error("database: disk error at", path_, number);
  return {kind, text};
}

Result<std::unique_ptr<Database>> Database::open(const std::filesystem::path& path) {
  // Creates the file only if it is missing: opening and closing a file that SQLite uses elsewhere in this
  // process would drop its locks (sqlite.org/howtocorrupt.html, 2.2). SQLite gives its companion files the
  // same mode.
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0 && errno != EEXIST) return system_error("cannot open", path, errno);
  if (fd >= 0) ::close(fd);
  return open_existing(path);
}

Result<std::unique_ptr<Database>> Database::open_existing(const std::filesystem::path& path) {
  if (std::error_code error; std::filesystem::is_symlink(path, error))
    return Error{ErrorCode::kRefused, path.string() + " is a symbolic link; symbolic links are not followed"};
  FEDGE_TRY(identity, identity_of(path));
  FEDGE_TRY_VOID(check_owner(path));
  sqlite3* handle = nullptr;
  const int code =
      sqlite3_open_v2(path.c_str(), &handle, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, nullptr);
  auto database = std::unique_ptr<Database>(new Database(path, identity, handle));
  if (code != SQLITE_OK) return database->error(code);
  sqlite3_extended_result_codes(handle, 1);
  database->wait_for_others(kWaitForOthers);
  return database;
}

Result<void> Database::check_in_place() const {
  const auto now = identity_of(path_);
  if (now && *now == identity_) return {};
  const std::string where = "database " + path_.string();
  return Error{ErrorCode::kUnavailable,
               now ? where + " was replaced by another file while this program had it open"
                   : where + " was removed while this program had it open: " + now.error().message};
}

void Database::wait_for_others(std::chrono::milliseconds most) const {
  sqlite3_busy_timeout(handle_.get(), static_cast<int>(most.count()));
}

Result<void> Database::execute(const char* sql) const {
  const int code = sqlite3_exec(handle_.get(), sql, nullptr, nullptr, nullptr);
  if (code != SQLITE_OK) return error(code);
  return {};
}

Result<Statement> Database::prepare(const char* sql) const {
  sqlite3_stmt* statement = nullptr;
  const int code = sqlite3_prepare_v2(handle_.get(), sql, -1, &statement, nullptr);
  if (code != SQLITE_OK) return error(code);
  return Statement(*this, statement);
}

Result<std::int64_t> Database::number(const char* sql) const {
  FEDGE_TRY(statement, prepare(sql));
  FEDGE_TRY(found, statement.step());
  return found ? statement.integer(0) : 0;
}

Result<void> Database::check_kind(const DatabaseKind& kind) const {
  FEDGE_TRY(application, number("PRAGMA application_id"));
  if (application != kind.application)
    return Error{ErrorCode::kCorrupt, path_.string() + " is not " + kind.name + " of this program"};
  FEDGE_TRY(version, number("PRAGMA user_version"));
  if (version > kind.version)
    return Error{ErrorCode::kUnsupported,
                 path_.string() + " was written by a newer version of this program (format " +
                     std::to_string(version) + "; this version reads formats up to " +
                     std::to_string(kind.version) + "); update this program"};
  return {};
}

Result<void> Database::set_kind(const DatabaseKind& kind) const {
  FEDGE_TRY_VOID(execute(("PRAGMA application_id = " + std::to_string(kind.application)).c_str()));
  return execute(("PRAGMA user_version = " + std::to_string(kind.version)).c_str());
}

Result<std::string> Database::damage() const {
  FEDGE_TRY(check, prepare("PRAGMA quick_check(1)"));
  FEDGE_TRY(answered, check.step());
  return answered && check.text(0) != "ok" ? check.text(0) : std::string();
}

Result<void> Database::copy_to(const std::filesystem::path& path) const {
  FEDGE_TRY(copy, open(path));
  FEDGE_TRY_VOID(copy->execute("PRAGMA synchronous = FULL"));
  sqlite3_backup* job = sqlite3_backup_init(copy->handle_.get(), "main", handle_.get(), "main");
  if (job == nullptr) return copy->error(sqlite3_errcode(copy->handle_.get()));
  const int code = sqlite3_backup_step(job, /*all pages*/ -1);
  const int finished = sqlite3_backup_finish(job);
  // The error is at the copy if writing failed, and else at the source.
  if (finished != SQLITE_OK) return copy->error(finished);
  if (code != SQLITE_DONE) return error(code);
  return copy->execute("PRAGMA journal_mode = DELETE");
}

Statement& Statement::bind(int index, std::int64_t value) {
  const int code = sqlite3_bind_int64(statement_.get(), index, value);
  if (bound_ == SQLITE_OK) bound_ = code;
  return *this;
}

Statement& Statement::bind(int index, std::string_view text) {
  const int code =
      sqlite3_bind_text64(statement_.get(), index, text.data(), text.size(), SQLITE_TRANSIENT, SQLITE_UTF8);
  if (bound_ == SQLITE_OK) bound_ = code;
  return *this;
}

Statement& Statement::bind_bytes(int index, std::string_view bytes) {
  const int code = sqlite3_bind_blob64(statement_.get(), index, bytes.empty() ? "" : bytes.data(),
                                       bytes.size(), SQLITE_TRANSIENT);
  if (bound_ == SQLITE_OK) bound_ = code;
  return *this;
}

Result<bool> Statement::step() {
  if (bound_ != SQLITE_OK) return database_->error(bound_);
  const int code = sqlite3_step(statement_.get());
  if (code == SQLITE_ROW) return true;
  const bool done = code == SQLITE_DONE;
  if (!done) {
    const Error failed = database_->error(code);
    sqlite3_reset(statement_.get());
    return failed;
  }
  sqlite3_reset(statement_.get());
  return false;
}

Result<void> Statement::run() {
  FEDGE_TRY(more, step());
  (void)more;
  return {};
}

std::int64_t Statement::integer(int column) const { return sqlite3_column_int64(statement_.get(), column); }

std::string Statement::text(int column) const {
  const void* bytes = sqlite3_column_blob(statement_.get(), column);
  const int size = sqlite3_column_bytes(statement_.get(), column);
  return {static_cast<const char*>(bytes), static_cast<std::size_t>(size)};
}

Result<Transaction> Transaction::begin(const Database& database) {
  FEDGE_TRY_VOID(database.execute("BEGIN IMMEDIATE"));
  return Transaction(database);
}

// Ignores an error: it only means that SQLite has already rolled back.
Transaction::~Transaction() {
  if (database_ != nullptr) (void)database_->execute("ROLLBACK");
}

Result<void> Transaction::commit() {
  FEDGE_TRY_VOID(database_->execute("COMMIT"));
  database_ = nullptr;
  return {};
}

}  // namespace fedge::server
