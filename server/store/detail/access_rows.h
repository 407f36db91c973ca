// The rows of users, access tokens and projects in the enrolment book. Private to store/ and AccessControl.
// One thread at a time; the database must outlive the object.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/result.h"
#include "server/access/users.h"
#include "server/store/detail/book_rows.h"

namespace fedge::server {

class AccessRows {
 public:
  explicit AccessRows(const BookRows& book) : database_(&book.database()), change_(book.marks.change) {}

  Result<AccessBook> all() const;
  Result<std::optional<UserRecord>> find_user(const std::string& name) const;
  Result<std::optional<AccessTokenRecord>> find_token(std::uint32_t id) const;
  Result<bool> has_project(const std::string& name) const;

  // ---- within a transaction ----
  Result<void> put(const UserRecord& user) const;
  Result<void> put(const AccessTokenRecord& token) const;
  Result<void> put(const ProjectRecord& project) const;

 private:
  const Database* database_;
  std::int64_t change_;
};

}  // namespace fedge::server
