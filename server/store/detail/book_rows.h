// The enrolment book's rows in SQLite. Every row carries the number of the change that wrote it last, so that
// a reader fetches what is new and nothing else. Private to store/ and Enrolment. One thread at a time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/result.h"
#include "server/access/enrolment_book.h"
#include "server/store/detail/database.h"

namespace fedge::server {

// What there is once in a book.
struct BookMarks {
  std::string identity;          // drawn when the book was made
  std::int64_t next_client = 0;  // above every number that was ever given or promised
  std::int64_t next_token = 1;
  std::int64_t change = 0;     // how many there have been
  std::uint64_t recorded = 0;  // the last entry of the audit log that the book knows of
  std::string coordinator;     // its public key, in hexadecimal; empty: not bound yet
};

class BookRows {
 public:
  static Result<void> create(const Database& database, const std::string& identity);
  // The database's; `marks` are read then.
  static Result<BookRows> open(const Database& database);

  BookMarks marks;

  Result<std::optional<TokenRecord>> find_token(std::uint32_t id) const;
  Result<std::optional<TokenRecord>> find_secret(const std::string& secret_hash) const;
  // The token that this number is promised to the user of.
  Result<std::optional<TokenRecord>> find_promise(ClientId client) const;
  Result<std::optional<ClientRecord>> find_client(ClientId client) const;
  Result<std::optional<ClientRecord>> find_key(const PublicKey& key) const;
  // Rows that a later change than this has written, by number.
  Result<EnrolmentBook> changed_after(std::int64_t change) const;
  // Who has joined with a token since then, in that order.
  Result<std::vector<RecentEnrolment>> enrolled_since(std::int64_t since) const;

  // ---- within a transaction, whose change is number marks.change ----
  Result<void> put(const TokenRecord& token) const;
  Result<void> put(const ClientRecord& client) const;
  Result<void> put_marks() const;
  ClientId take_client() { return ClientId(static_cast<std::uint32_t>(marks.next_client++)); }
  std::uint32_t take_token() { return static_cast<std::uint32_t>(marks.next_token++); }

 private:
  explicit BookRows(const Database& database) : database_(&database) {}
  Result<std::optional<TokenRecord>> token(Statement& select) const;
  Result<std::optional<ClientRecord>> client(Statement& select) const;

  const Database* database_;
};

}  // namespace fedge::server
