// The enrolment book's rows in SQLite. Each row has the number of the change that last wrote it, so that a
// reader can fetch only new rows. Private to store/ and Enrolment. One thread at a time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/result.h"
#include "server/access/enrolment_book.h"
#include "server/store/detail/database.h"

namespace fedge::server {

// The book's single row.
struct BookMarks {
  std::string identity;          // random, drawn when the book was created
  std::int64_t next_client = 0;  // above all numbers ever assigned or promised
  std::int64_t next_token = 1;
  std::int64_t next_access = 1;  // of access tokens
  std::int64_t change = 0;       // number of changes so far
  std::uint64_t recorded = 0;    // last audit log entry that the book contains
  std::string coordinator;       // public key in hexadecimal; empty: not bound yet
};

class BookRows {
 public:
  static Result<void> create(const Database& database, const std::string& identity);
  // Brings a book of this version, from 1, to the present one.
  static Result<void> upgrade(const Database& database, std::int64_t from);
  // Opens the book and reads `marks`.
  static Result<BookRows> open(const Database& database);

  BookMarks marks;

  Result<std::optional<TokenRecord>> find_token(std::uint32_t id) const;
  Result<std::optional<TokenRecord>> find_secret(const std::string& secret_hash) const;
  // Returns the token that promises this client number.
  Result<std::optional<TokenRecord>> find_promise(ClientId client) const;
  // Returns the tokens for a replacement of the client that are neither used nor revoked.
  Result<std::vector<TokenRecord>> replacements_of(ClientId client) const;
  Result<std::optional<ClientRecord>> find_client(ClientId client) const;
  Result<std::optional<ClientRecord>> find_key(const PublicKey& key) const;
  Result<bool> is_retired(const PublicKey& key) const;
  // Returns the rows written after this change, by number.
  Result<EnrolmentBook> changed_after(std::int64_t change) const;
  // Returns the clients that joined with a token after this time, in order.
  Result<std::vector<RecentEnrolment>> enrolled_since(std::int64_t since) const;

  // ---- within a transaction, whose change is number marks.change ----
  Result<void> put(const TokenRecord& token) const;
  Result<void> put(const ClientRecord& client) const;
  Result<void> put(const RetiredKey& retired) const;
  Result<void> put_marks() const;
  const Database& database() const { return *database_; }
  ClientId take_client() { return ClientId(static_cast<std::uint32_t>(marks.next_client++)); }
  std::uint32_t take_access() { return static_cast<std::uint32_t>(marks.next_access++); }
  std::uint32_t take_token() { return static_cast<std::uint32_t>(marks.next_token++); }

 private:
  explicit BookRows(const Database& database) : database_(&database) {}
  Result<std::optional<TokenRecord>> token(Statement& select) const;
  Result<std::optional<ClientRecord>> client(Statement& select) const;

  const Database* database_;
};

}  // namespace fedge::server
