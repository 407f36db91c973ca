#include "server/store/detail/enrolment_store.h"

#include <algorithm>
#include <cerrno>
#include <optional>
#include <string>
#include <utility>

#include "core/crypto/random.h"
#include "core/platform/files.h"
#include "server/audit_log.h"
#include "server/store/detail/book_history.h"
#include "server/store/enrolment_file.h"

namespace fedge::server {
namespace {

constexpr std::size_t kMaxFormerBook = 64 << 20;
constexpr std::size_t kIdentityBytes = 16;
// "FDGB"
constexpr DatabaseKind kBookFile{"an enrolment book", 1178879810, 3};

std::filesystem::path former_book(const std::filesystem::path& data_directory) {
  return data_directory / "enrolment.json";
}

// Returns what proves that a book existed, or nothing if there never was one.
Result<std::optional<std::string>> evidence(const std::filesystem::path& data_directory) {
  std::filesystem::path kept = former_book(data_directory);
  kept += ".migrated";
  std::error_code ignored;
  if (std::filesystem::exists(kept, ignored)) return std::optional(kept.string());
  const auto log = AuditLog(data_directory).entries_after(0);
  if (!log) return log.error();
  for (const AuditEntry& entry : *log)
    if (changes_book(entry.event.action))
      return std::optional("entry " + std::to_string(entry.sequence) + " of " +
                           (data_directory / "audit.log").string());
  return std::optional<std::string>();
}

Result<std::optional<EnrolmentBook>> read_former(const std::filesystem::path& file) {
  const auto text = read_file(file, kMaxFormerBook);
  if (!text && text.error().code == ErrorCode::kNotFound) return std::optional<EnrolmentBook>();
  if (!text) return text.error();
  const auto book = parse_enrolment_book(*text);
  if (!book) return book.error().with_prefix(file.string() + " ");
  return std::optional(*book);
}

// Renames the former book, so that it is not read again if the new one goes missing.
Result<void> retire(const std::filesystem::path& former) {
  std::filesystem::path kept = former;
  kept += ".migrated";
  std::error_code error;
  std::filesystem::rename(former, kept, error);
  if (error == std::errc::no_such_file_or_directory) return {};
  if (error) return system_error("cannot rename", former, error.value());
  return sync_directory(former.parent_path());
}

Result<void> fill(const Database& database, const EnrolmentBook& book, std::uint64_t recorded) {
  FEDGE_TRY(transaction, Transaction::begin(database));
  FEDGE_TRY_VOID(BookRows::create(database, random_hex(kIdentityBytes)));
  FEDGE_TRY(rows, BookRows::open(database));
  rows.marks.change = 1;
  rows.marks.recorded = recorded;
  for (const TokenRecord& token : book.tokens) {
    rows.marks.next_token = std::max(rows.marks.next_token, std::int64_t{token.id} + 1);
    if (token.client)
      rows.marks.next_client = std::max(rows.marks.next_client, std::int64_t{token.client->value()} + 1);
    FEDGE_TRY_VOID(rows.put(token));
  }
  for (const ClientRecord& client : book.clients) {
    rows.marks.next_client = std::max(rows.marks.next_client, std::int64_t{client.client.value()} + 1);
    FEDGE_TRY_VOID(rows.put(client));
  }
  FEDGE_TRY_VOID(rows.put_marks());
  FEDGE_TRY_VOID(database.set_kind(kBookFile));
  return transaction.commit();
}

// Refuses a user who does not own the data directory's files, and so must not create the book.
Result<void> check_maker(const std::filesystem::path& data_directory) {
  FEDGE_TRY_VOID(check_owner(data_directory / "node.key"));
  return check_owner(data_directory / "audit.log");
}

}  // namespace

std::filesystem::path enrolment_path(const std::filesystem::path& data_directory) {
  return data_directory / "enrolment.db";
}

// Creates the file under another name and renames it once it is complete.
Result<void> create_enrolment_book(const std::filesystem::path& data_directory, const EnrolmentBook& book) {
  FEDGE_TRY_VOID(check_maker(data_directory));
  const std::filesystem::path file = enrolment_path(data_directory);
  std::filesystem::path beside = file;
  beside += ".new";
  std::error_code ignored;
  for (const char* rest : {"", "-journal"})
    std::filesystem::remove(std::filesystem::path(beside.string() + rest), ignored);
  FEDGE_TRY(recorded, AuditLog(data_directory).last());
  {
    FEDGE_TRY(database, Database::open(beside));
    FEDGE_TRY_VOID(fill(*database, book, recorded));
  }
  std::error_code error;
  std::filesystem::rename(beside, file, error);
  if (error) return system_error("cannot make", file, error.value());
  return sync_directory(data_directory);
}

Result<std::unique_ptr<EnrolmentStore>> EnrolmentStore::open(const std::filesystem::path& data_directory) {
  const std::filesystem::path file = enrolment_path(data_directory);
  std::error_code ignored;
  if (!std::filesystem::exists(file, ignored) ||
      std::filesystem::exists(former_book(data_directory), ignored)) {
    const FileLock lock(data_directory / "enrolment.lock");
    if (!lock.held()) return system_error("cannot lock the enrolment book in", data_directory, errno);
    if (!std::filesystem::exists(file, ignored)) {
      FEDGE_TRY(former, read_former(former_book(data_directory)));
      FEDGE_TRY(seen, former ? Result<std::optional<std::string>>(std::nullopt) : evidence(data_directory));
      if (seen)
        return Error{ErrorCode::kUnavailable, file.string() + " is missing although it existed before (" +
                                                  *seen +
                                                  "); restore it, or restore the data directory from a "
                                                  "backup"};
      FEDGE_TRY_VOID(create_enrolment_book(data_directory, former.value_or(EnrolmentBook{})));
    }
    FEDGE_TRY_VOID(retire(former_book(data_directory)));
  }
  FEDGE_TRY(database, Database::open_existing(file));
  auto store = std::unique_ptr<EnrolmentStore>(new EnrolmentStore(file, std::move(database)));
  if (auto ready = store->prepare(); !ready) return ready.error();
  return store;
}

Result<void> EnrolmentStore::prepare() const {
  FEDGE_TRY_VOID(database_->check_kind(kBookFile));  // must not modify another program's file
  FEDGE_TRY(version, database_->number("PRAGMA user_version"));
  FEDGE_TRY_VOID(database_->execute("PRAGMA journal_mode = TRUNCATE"));
  FEDGE_TRY_VOID(database_->execute("PRAGMA synchronous = FULL"));
  FEDGE_TRY(damage, database_->damage());
  if (!damage.empty())
    return Error{ErrorCode::kCorrupt,
                 path_.string() + " is damaged (" + damage + "); restore the data directory from a backup"};
  return version == kBookFile.version ? Result<void>() : upgrade();
}

// One transaction: a process that opens the book meanwhile waits and finds it upgraded.
Result<void> EnrolmentStore::upgrade() const {
  FEDGE_TRY(transaction, Transaction::begin(*database_));
  FEDGE_TRY(version, database_->number("PRAGMA user_version"));
  if (version == kBookFile.version) return {};
  FEDGE_TRY_VOID(BookRows::upgrade(*database_, version));
  FEDGE_TRY_VOID(database_->set_kind(kBookFile));
  return transaction.commit();
}

Result<BookRows> EnrolmentStore::rows(std::chrono::milliseconds wait) const {
  database_->wait_for_others(wait);
  auto rows = BookRows::open(*database_);
  if (!rows) return rows.error().with_prefix(path_.string() + ": ");
  return rows;
}

Result<void> EnrolmentStore::update(const std::function<Result<bool>(BookRows&)>& change) const {
  FEDGE_TRY_VOID(check_in_place());
  database_->wait_for_others(kWait);
  FEDGE_TRY(transaction, Transaction::begin(*database_));
  FEDGE_TRY(book, BookRows::open(*database_));
  ++book.marks.change;
  FEDGE_TRY(wanted, change(book));
  if (!wanted) return {};
  FEDGE_TRY_VOID(book.put_marks());
  FEDGE_TRY_VOID(transaction.commit());
  return check_in_place();
}

}  // namespace fedge::server
