// What the audit log and the enrolment book say of each other. The log has a change before the book does; so
// an entry that the book does not know was cut short by a crash, has failed, or an older copy of the book has
// been put back. Private to Enrolment. Pure but for the rows.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/result.h"
#include "server/access/audit_entry.h"
#include "server/store/detail/book_rows.h"

namespace fedge::server {

// Of actions that only come to pass with a change of the book.
bool changes_book(const std::string& action);

// Makes good what these entries, which the book does not know, say of numbers and revocations: a number that
// was given or promised is not given again, and what was revoked is revoked. Enrolments and approvals are
// not: a client joins again. Returns the entries that are about the book and came to pass.
Result<std::vector<AuditEntry>> make_good(BookRows& rows, const std::vector<AuditEntry>& entries);

}  // namespace fedge::server
