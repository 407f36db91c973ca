// Repair of the enrolment book from the audit log. The log contains a change before the book does. So an
// entry that the book lacks was interrupted by a crash, failed, or was lost when an older copy of the book
// was restored. Private to Enrolment. Only side effect: the book's rows.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/result.h"
#include "server/access/audit_entry.h"
#include "server/store/detail/book_rows.h"

namespace fedge::server {

// Action of the entry of a coordinator's key that replaced the former one.
inline constexpr const char* kKeyRotated = "key.rotated";
// Action of the entry of a restored copy of the data directory.
inline constexpr const char* kBackupRestored = "backup.restored";

// Revokes every join token and access token that is not revoked or used up, and returns how many of each.
Result<std::pair<std::size_t, std::size_t>> revoke_all_open(BookRows& rows);

// Returns whether entries with this action describe a change of the book.
bool changes_book(const std::string& action);

// Returns the key that a book bound to `bound` is bound to after these entries.
std::string rotated_coordinator(std::string bound, const std::vector<AuditEntry>& entries);

// Applies entries that the book lacks: assigned or promised numbers stay taken, and enrolments, approvals
// and revocations are restored. Skips entries whose change failed. Returns the applied entries.
Result<std::vector<AuditEntry>> make_good(BookRows& rows, const std::vector<AuditEntry>& entries);

}  // namespace fedge::server
