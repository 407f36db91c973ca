#include "server/store/detail/book_rows.h"

#include <algorithm>
#include <span>
#include <utility>

namespace fedge::server {
namespace {

constexpr const char* kCreateBook =
    R"(CREATE TABLE book (
         only INTEGER PRIMARY KEY CHECK (only = 1), identity TEXT NOT NULL, next_client INTEGER NOT NULL,
         next_token INTEGER NOT NULL, change INTEGER NOT NULL, recorded INTEGER NOT NULL,
         coordinator TEXT NOT NULL);
       CREATE TABLE tokens (
         id INTEGER PRIMARY KEY, client INTEGER UNIQUE, secret_hash TEXT NOT NULL UNIQUE,
         created INTEGER NOT NULL, expires INTEGER NOT NULL, uses INTEGER NOT NULL, used INTEGER NOT NULL,
         approve INTEGER NOT NULL, revoked INTEGER NOT NULL, change INTEGER NOT NULL);
       CREATE INDEX tokens_by_change ON tokens (change);
       CREATE TABLE clients (
         client INTEGER PRIMARY KEY, key BLOB NOT NULL UNIQUE, enrolled INTEGER NOT NULL,
         token INTEGER NOT NULL, state INTEGER NOT NULL, household TEXT NOT NULL, change INTEGER NOT NULL);
       CREATE INDEX clients_by_change ON clients (change);
       CREATE INDEX clients_by_time ON clients (enrolled);
       INSERT INTO book VALUES (1, '', 0, 1, 0, 0, '');)";

// A released upgrade must not change.
constexpr const char* kUpgradeFromFirst =
    R"(ALTER TABLE book ADD COLUMN next_access INTEGER NOT NULL DEFAULT 1;
       ALTER TABLE tokens ADD COLUMN name TEXT NOT NULL DEFAULT '';
       ALTER TABLE tokens ADD COLUMN labels TEXT NOT NULL DEFAULT '';
       ALTER TABLE tokens ADD COLUMN project TEXT NOT NULL DEFAULT 'default';
       ALTER TABLE clients ADD COLUMN name TEXT NOT NULL DEFAULT '';
       ALTER TABLE clients ADD COLUMN labels TEXT NOT NULL DEFAULT '';
       ALTER TABLE clients ADD COLUMN project TEXT NOT NULL DEFAULT 'default';
       CREATE TABLE projects (name TEXT PRIMARY KEY, created INTEGER NOT NULL, change INTEGER NOT NULL);
       CREATE TABLE users (
         name TEXT PRIMARY KEY, grants TEXT NOT NULL, created INTEGER NOT NULL, removed INTEGER NOT NULL,
         change INTEGER NOT NULL);
       CREATE TABLE access_tokens (
         id INTEGER PRIMARY KEY, user TEXT NOT NULL, secret_hash TEXT NOT NULL UNIQUE,
         created INTEGER NOT NULL, expires INTEGER NOT NULL, role TEXT NOT NULL, project TEXT NOT NULL,
         note TEXT NOT NULL, revoked INTEGER NOT NULL, change INTEGER NOT NULL);
       INSERT INTO projects VALUES ('default', 0, 0);)";

constexpr const char* kUpgradeFromSecond =
    R"(CREATE TABLE retired_keys (key BLOB PRIMARY KEY, client INTEGER NOT NULL, change INTEGER NOT NULL);
       CREATE INDEX retired_by_change ON retired_keys (change);
       ALTER TABLE tokens ADD COLUMN replaces INTEGER;)";

constexpr const char* kTokens =
    "SELECT id, client, secret_hash, created, expires, uses, used, approve, revoked, client IS NULL, name, "
    "labels, project, replaces IS NULL, replaces FROM tokens ";
constexpr const char* kClients =
    "SELECT client, key, enrolled, token, state, household, name, labels, project FROM clients ";

ClientDescription description_in(const Statement& row, int first) {
  return {row.text(first), split_labels(row.text(first + 1)), row.text(first + 2)};
}

void bind_description(Statement& statement, int first, const ClientDescription& description) {
  statement.bind(first, description.name)
      .bind(first + 1, joined_labels(description.labels))
      .bind(first + 2, description.project);
}

std::string_view bytes_of(const PublicKey& key) {
  return {reinterpret_cast<const char*>(key.bytes.data()), key.bytes.size()};
}

std::int64_t number(ClientId client) { return std::int64_t{client.value()}; }

Error damaged_row(const char* table) {
  return {ErrorCode::kCorrupt, std::string("the table ") + table + " of the enrolment book is damaged"};
}

TokenRecord token_row(const Statement& row) {
  TokenRecord token{.id = static_cast<std::uint32_t>(row.integer(0)),
                    .secret_hash = row.text(2),
                    .created = row.integer(3),
                    .expires = row.integer(4),
                    .uses = static_cast<std::uint32_t>(row.integer(5)),
                    .used = static_cast<std::uint32_t>(row.integer(6)),
                    .approve = row.integer(7) != 0,
                    .revoked = row.integer(8) != 0,
                    .description = description_in(row, 10)};
  if (row.integer(9) == 0) token.client = ClientId(static_cast<std::uint32_t>(row.integer(1)));
  if (row.integer(13) == 0) token.replaces = ClientId(static_cast<std::uint32_t>(row.integer(14)));
  return token;
}

bool take_key(const std::string& bytes, PublicKey& key) {
  if (bytes.size() != key.bytes.size()) return false;
  std::copy(bytes.begin(), bytes.end(), key.bytes.begin());
  return true;
}

Result<ClientRecord> client_row(const Statement& row) {
  const std::int64_t state = row.integer(4);
  ClientRecord client{.client = ClientId(static_cast<std::uint32_t>(row.integer(0))),
                      .enrolled = row.integer(2),
                      .token = static_cast<std::uint32_t>(row.integer(3)),
                      .household = row.text(5),
                      .description = description_in(row, 6)};
  if (!take_key(row.text(1), client.key) || state < 0 ||
      state > static_cast<std::int64_t>(ClientState::kRevoked))
    return damaged_row("clients");
  client.state = static_cast<ClientState>(state);
  return client;
}

}  // namespace

Result<void> BookRows::create(const Database& database, const std::string& identity) {
  FEDGE_TRY_VOID(database.execute(kCreateBook));
  FEDGE_TRY_VOID(upgrade(database, 1));
  FEDGE_TRY(update, database.prepare("UPDATE book SET identity = ?"));
  return update.bind(1, identity).run();
}

Result<void> BookRows::upgrade(const Database& database, std::int64_t from) {
  if (from < 2) FEDGE_TRY_VOID(database.execute(kUpgradeFromFirst));
  return database.execute(kUpgradeFromSecond);
}

Result<BookRows> BookRows::open(const Database& database) {
  BookRows rows(database);
  FEDGE_TRY(select,
            database.prepare("SELECT identity, next_client, next_token, change, recorded, coordinator, "
                             "next_access FROM book"));
  FEDGE_TRY(found, select.step());
  if (!found) return damaged_row("book");
  rows.marks = {.identity = select.text(0),
                .next_client = select.integer(1),
                .next_token = select.integer(2),
                .next_access = select.integer(6),
                .change = select.integer(3),
                .recorded = static_cast<std::uint64_t>(select.integer(4)),
                .coordinator = select.text(5)};
  return rows;
}

Result<std::optional<TokenRecord>> BookRows::token(Statement& select) const {
  FEDGE_TRY(found, select.step());
  return found ? std::optional(token_row(select)) : std::nullopt;
}

Result<std::optional<ClientRecord>> BookRows::client(Statement& select) const {
  FEDGE_TRY(found, select.step());
  if (!found) return std::optional<ClientRecord>();
  FEDGE_TRY(record, client_row(select));
  return std::optional(std::move(record));
}

Result<std::optional<TokenRecord>> BookRows::find_token(std::uint32_t id) const {
  FEDGE_TRY(select, database_->prepare((std::string(kTokens) + "WHERE id = ?").c_str()));
  return token(select.bind(1, std::int64_t{id}));
}

// An index lookup is safe: its timing may reveal something about the hash, but nothing about the 32 random
// bytes behind it.
Result<std::optional<TokenRecord>> BookRows::find_secret(const std::string& secret_hash) const {
  FEDGE_TRY(select, database_->prepare((std::string(kTokens) + "WHERE secret_hash = ?").c_str()));
  return token(select.bind(1, secret_hash));
}

Result<std::optional<TokenRecord>> BookRows::find_promise(ClientId client) const {
  FEDGE_TRY(select, database_->prepare((std::string(kTokens) + "WHERE client = ?").c_str()));
  return token(select.bind(1, number(client)));
}

Result<std::vector<TokenRecord>> BookRows::replacements_of(ClientId client) const {
  FEDGE_TRY(
      select,
      database_->prepare(
          (std::string(kTokens) + "WHERE replaces = ? AND used < uses AND revoked = 0 ORDER BY id").c_str()));
  select.bind(1, number(client));
  std::vector<TokenRecord> tokens;
  for (;;) {
    FEDGE_TRY(more, select.step());
    if (!more) return tokens;
    tokens.push_back(token_row(select));
  }
}

Result<std::optional<ClientRecord>> BookRows::find_client(ClientId id) const {
  FEDGE_TRY(select, database_->prepare((std::string(kClients) + "WHERE client = ?").c_str()));
  return client(select.bind(1, number(id)));
}

Result<std::optional<ClientRecord>> BookRows::find_key(const PublicKey& key) const {
  FEDGE_TRY(select, database_->prepare((std::string(kClients) + "WHERE key = ?").c_str()));
  return client(select.bind_bytes(1, bytes_of(key)));
}

Result<bool> BookRows::is_retired(const PublicKey& key) const {
  FEDGE_TRY(select, database_->prepare("SELECT 1 FROM retired_keys WHERE key = ?"));
  return select.bind_bytes(1, bytes_of(key)).step();
}

Result<EnrolmentBook> BookRows::changed_after(std::int64_t change) const {
  EnrolmentBook book;
  FEDGE_TRY(tokens,
            database_->prepare(
                (std::string(kTokens) + "INDEXED BY tokens_by_change WHERE change > ? ORDER BY id").c_str()));
  tokens.bind(1, change);
  for (;;) {
    FEDGE_TRY(more, tokens.step());
    if (!more) break;
    book.tokens.push_back(token_row(tokens));
  }
  FEDGE_TRY(
      clients,
      database_->prepare(
          (std::string(kClients) + "INDEXED BY clients_by_change WHERE change > ? ORDER BY client").c_str()));
  clients.bind(1, change);
  for (;;) {
    FEDGE_TRY(more, clients.step());
    if (!more) break;
    FEDGE_TRY(client, client_row(clients));
    book.clients.push_back(std::move(client));
  }
  FEDGE_TRY(retired, database_->prepare("SELECT key, client FROM retired_keys WHERE change > ?"));
  retired.bind(1, change);
  for (;;) {
    FEDGE_TRY(more, retired.step());
    if (!more) return book;
    RetiredKey one{.key = {}, .client = ClientId(static_cast<std::uint32_t>(retired.integer(1)))};
    if (!take_key(retired.text(0), one.key)) return damaged_row("retired_keys");
    book.retired.push_back(one);
  }
}

Result<std::vector<RecentEnrolment>> BookRows::enrolled_since(std::int64_t since) const {
  FEDGE_TRY(select, database_->prepare("SELECT household, secret_hash, enrolled FROM clients JOIN tokens ON "
                                       "tokens.id = clients.token WHERE enrolled > ? ORDER BY enrolled"));
  select.bind(1, since);
  std::vector<RecentEnrolment> recent;
  for (;;) {
    FEDGE_TRY(more, select.step());
    if (!more) return recent;
    recent.push_back({select.text(0), select.text(1), select.integer(2)});
  }
}

Result<void> BookRows::put(const TokenRecord& token) const {
  FEDGE_TRY(replace,
            database_->prepare(
                token.client     ? "INSERT OR REPLACE INTO tokens (id, secret_hash, created, expires, "
                                   "uses, used, approve, revoked, change, name, labels, project, client) "
                                   "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
                : token.replaces ? "INSERT OR REPLACE INTO tokens (id, secret_hash, created, expires, "
                                   "uses, used, approve, revoked, change, name, labels, project, replaces) "
                                   "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
                                 : "INSERT OR REPLACE INTO tokens (id, secret_hash, created, expires, "
                                   "uses, used, approve, revoked, change, name, labels, project) VALUES "
                                   "(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"));
  replace.bind(1, std::int64_t{token.id})
      .bind(2, token.secret_hash)
      .bind(3, token.created)
      .bind(4, token.expires)
      .bind(5, std::int64_t{token.uses})
      .bind(6, std::int64_t{token.used})
      .bind(7, std::int64_t{token.approve ? 1 : 0})
      .bind(8, std::int64_t{token.revoked ? 1 : 0})
      .bind(9, marks.change);
  bind_description(replace, 10, token.description);
  if (const auto& named = token.client ? token.client : token.replaces) replace.bind(13, number(*named));
  return replace.run();
}

Result<void> BookRows::put(const ClientRecord& client) const {
  FEDGE_TRY(replace,
            database_->prepare("INSERT OR REPLACE INTO clients (client, key, enrolled, token, state, "
                               "household, change, name, labels, project) VALUES "
                               "(?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"));
  bind_description(replace, 8, client.description);
  return replace.bind(1, number(client.client))
      .bind_bytes(2, bytes_of(client.key))
      .bind(3, client.enrolled)
      .bind(4, std::int64_t{client.token})
      .bind(5, static_cast<std::int64_t>(client.state))
      .bind(6, client.household)
      .bind(7, marks.change)
      .run();
}

Result<void> BookRows::put(const RetiredKey& retired) const {
  FEDGE_TRY(replace, database_->prepare("INSERT OR REPLACE INTO retired_keys VALUES (?, ?, ?)"));
  return replace.bind_bytes(1, bytes_of(retired.key))
      .bind(2, number(retired.client))
      .bind(3, marks.change)
      .run();
}

Result<void> BookRows::put_marks() const {
  FEDGE_TRY(update, database_->prepare("UPDATE book SET next_client = ?, next_token = ?, change = ?, "
                                       "recorded = ?, coordinator = ?, next_access = ?"));
  return update.bind(1, marks.next_client)
      .bind(2, marks.next_token)
      .bind(3, marks.change)
      .bind(4, static_cast<std::int64_t>(marks.recorded))
      .bind(5, marks.coordinator)
      .bind(6, marks.next_access)
      .run();
}

}  // namespace fedge::server
