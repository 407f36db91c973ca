#include "server/store/detail/access_rows.h"

#include <utility>

namespace fedge::server {
namespace {

constexpr const char* kUsers = "SELECT name, grants, created, removed FROM users ";
constexpr const char* kAccessTokens =
    "SELECT id, user, secret_hash, created, expires, role, project, note, revoked FROM access_tokens ";

Error damaged_access(const char* table) {
  return {ErrorCode::kCorrupt, std::string("the table ") + table + " of the enrolment book is damaged"};
}

Result<UserRecord> user_row(const Statement& row) {
  auto grants = parse_grants(row.text(1));
  if (!grants) return damaged_access("users");
  return UserRecord{.name = row.text(0),
                    .grants = std::move(*grants),
                    .created = row.integer(2),
                    .removed = row.integer(3) != 0};
}

Result<AccessTokenRecord> access_token_row(const Statement& row) {
  const std::string role = row.text(5);
  AccessTokenRecord token{.id = static_cast<std::uint32_t>(row.integer(0)),
                          .user = row.text(1),
                          .secret_hash = row.text(2),
                          .created = row.integer(3),
                          .expires = row.integer(4),
                          .role = parse_role(role),
                          .project = row.text(6),
                          .note = row.text(7),
                          .revoked = row.integer(8) != 0};
  // A token whose limit cannot be read must not count as unlimited.
  if (!role.empty() && !token.role) return damaged_access("access_tokens");
  return token;
}

}  // namespace

Result<AccessBook> AccessRows::all() const {
  AccessBook book;
  FEDGE_TRY(users, database_->prepare((std::string(kUsers) + "ORDER BY name").c_str()));
  for (;;) {
    FEDGE_TRY(more, users.step());
    if (!more) break;
    FEDGE_TRY(user, user_row(users));
    book.users.push_back(std::move(user));
  }
  FEDGE_TRY(tokens, database_->prepare((std::string(kAccessTokens) + "ORDER BY id").c_str()));
  for (;;) {
    FEDGE_TRY(more, tokens.step());
    if (!more) break;
    FEDGE_TRY(token, access_token_row(tokens));
    book.tokens.push_back(std::move(token));
  }
  FEDGE_TRY(projects, database_->prepare("SELECT name, created FROM projects ORDER BY name"));
  for (;;) {
    FEDGE_TRY(more, projects.step());
    if (!more) return book;
    book.projects.push_back({projects.text(0), projects.integer(1)});
  }
}

Result<std::optional<UserRecord>> AccessRows::find_user(const std::string& name) const {
  FEDGE_TRY(select, database_->prepare((std::string(kUsers) + "WHERE name = ?").c_str()));
  FEDGE_TRY(found, select.bind(1, name).step());
  if (!found) return std::optional<UserRecord>();
  FEDGE_TRY(user, user_row(select));
  return std::optional(std::move(user));
}

Result<std::optional<AccessTokenRecord>> AccessRows::find_token(std::uint32_t id) const {
  FEDGE_TRY(select, database_->prepare((std::string(kAccessTokens) + "WHERE id = ?").c_str()));
  FEDGE_TRY(found, select.bind(1, std::int64_t{id}).step());
  if (!found) return std::optional<AccessTokenRecord>();
  FEDGE_TRY(token, access_token_row(select));
  return std::optional(std::move(token));
}

Result<bool> AccessRows::has_project(const std::string& name) const {
  FEDGE_TRY(select, database_->prepare("SELECT 1 FROM projects WHERE name = ?"));
  return select.bind(1, name).step();
}

Result<void> AccessRows::put(const UserRecord& user) const {
  FEDGE_TRY(replace, database_->prepare("INSERT OR REPLACE INTO users (name, grants, created, removed, "
                                        "change) VALUES (?, ?, ?, ?, ?)"));
  return replace.bind(1, user.name)
      .bind(2, to_string(user.grants))
      .bind(3, user.created)
      .bind(4, std::int64_t{user.removed ? 1 : 0})
      .bind(5, change_)
      .run();
}

Result<void> AccessRows::put(const AccessTokenRecord& token) const {
  FEDGE_TRY(replace, database_->prepare("INSERT OR REPLACE INTO access_tokens (id, user, secret_hash, "
                                        "created, expires, role, project, note, revoked, change) VALUES "
                                        "(?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"));
  return replace.bind(1, std::int64_t{token.id})
      .bind(2, token.user)
      .bind(3, token.secret_hash)
      .bind(4, token.created)
      .bind(5, token.expires)
      .bind(6, token.role ? name_of(*token.role) : "")
      .bind(7, token.project)
      .bind(8, token.note)
      .bind(9, std::int64_t{token.revoked ? 1 : 0})
      .bind(10, change_)
      .run();
}

Result<void> AccessRows::put(const ProjectRecord& project) const {
  FEDGE_TRY(insert, database_->prepare("INSERT OR IGNORE INTO projects (name, created, change) VALUES "
                                       "(?, ?, ?)"));
  return insert.bind(1, project.name).bind(2, project.created).bind(3, change_).run();
}

}  // namespace fedge::server
